"""Thirty agents of a company, and what people ask for: in scope with the right one, and out of scope.

All of it was written before any figure of the matcher was chosen. Queries are divided in two: figures may
be chosen by `TUNED`, and are only checked by `KEPT`.
"""

from typing import Final

from remit.core.card import Card

AGENTS: Final = (
    Card(
        "invoice-clerk",
        role="accounts payable",
        can=["read invoices", "match invoices to purchase orders"],
        instructions="You process supplier bills. Extract the vendor, amount, due date and tax from each invoice, "
        "compare them with the purchase order, and flag duplicates or overcharges before payment is released.",
    ),
    Card(
        "expense-auditor",
        role="checks what employees spend",
        can="audit expense reports",
        instructions="Go through travel receipts and credit card statements handed in by staff. Apply the company "
        "policy: meal limits, hotel caps, missing receipts. Say what may be reimbursed and what may not.",
    ),
    Card(
        "payroll",
        can=["calculate salaries", "explain payslips"],
        instructions="You answer questions about wages, deductions, bonuses and overtime, and prepare the monthly pay "
        "run. Never disclose one person's salary to another.",
    ),
    Card(
        "recruiter",
        role="talent acquisition",
        can=["screen candidates", "write job postings"],
        instructions="You read CVs and cover letters, score applicants against the vacancy, and schedule interviews "
        "with hiring managers. Reject politely.",
    ),
    Card(
        "onboarding-buddy",
        role="helps people in their first weeks",
        can="onboard new employees",
        instructions="Walk a new hire through their first day: laptop, badge, accounts, introductions, mandatory "
        "training. Keep a checklist and remind the manager of what is missing.",
    ),
    Card(
        "contract-lawyer",
        role="legal counsel",
        can=["review contracts", "draft NDAs"],
        instructions="Look for liability, termination, indemnity and jurisdiction clauses. Mark anything that deviates "
        "from our standard terms and propose wording for negotiation.",
    ),
    Card(
        "privacy-officer",
        role="data protection",
        can="answer GDPR requests",
        instructions="Handle requests of people who want to know, correct or erase the personal data we hold about "
        "them. Assess breaches and tell whether the regulator must be notified within 72 hours.",
    ),
    Card(
        "code-reviewer",
        can=["review pull requests", "find bugs"],
        instructions="Read the diff carefully. Look for logic errors, race conditions, missing tests and unclear "
        "naming. Comment on lines; be kind and specific. Approve only what you would maintain.",
    ),
    Card(
        "test-writer",
        can="write unit tests",
        instructions="Given a function or module, write pytest cases for the normal path, edge cases and failures. Aim "
        "at branch coverage and avoid mocks.",
    ),
    Card(
        "release-manager",
        can=["cut releases", "deploy to production"],
        instructions="Bump the version, write the changelog, tag the commit, roll out in stages and roll back when "
        "error rates rise. Announce a freeze before holidays.",
    ),
    Card(
        "incident-commander",
        role="on call",
        can="coordinate outages",
        instructions="When an alert pages at night, open a channel, find who owns the service, keep a timeline, post "
        "status updates to customers, and write the postmortem afterwards.",
    ),
    Card(
        "db-admin",
        role="database administrator",
        can=["tune SQL queries", "restore backups"],
        instructions="You look after PostgreSQL clusters: slow queries, indexes, vacuum, replication lag, migrations "
        "and disaster recovery. Explain plans before you change anything.",
    ),
    Card(
        "security-analyst",
        can=["triage vulnerabilities", "investigate phishing"],
        instructions="Examine suspicious messages, malware samples and login anomalies. Rate CVEs by exposure and say "
        "what to patch first. Rotate leaked credentials.",
    ),
    Card(
        "helpdesk",
        role="IT support",
        can="fix computer problems",
        instructions="Employees come with forgotten passwords, broken printers, VPN trouble, slow laptops and software "
        "they want installed. Ask one question at a time and log a ticket.",
    ),
    Card(
        "cloud-accountant",
        can="cut cloud costs",
        instructions="Analyse AWS and Azure usage, find idle instances, oversized volumes and forgotten snapshots, "
        "recommend reserved capacity, and forecast next quarter's hosting bill.",
    ),
    Card(
        "data-scientist",
        can=["train models", "forecast demand"],
        instructions="Explore datasets, engineer features, fit regressions and gradient boosted trees, validate on a "
        "holdout, and report uncertainty. Explain churn and seasonality to people who are not statisticians.",
    ),
    Card(
        "chart-maker",
        can=["plot charts", "build dashboards"],
        instructions="Turn tables into bar, line and scatter plots. Choose axes and colours for readability, label "
        "everything, export PNG or SVG.",
    ),
    Card(
        "spreadsheet-wizard",
        can="work with Excel files",
        instructions="Clean columns, write formulas and pivot tables, merge workbooks, remove duplicate rows, convert "
        "CSV. Check totals afterwards.",
    ),
    Card(
        "translator",
        role="linguist",
        can=["translate English, German, French and Spanish"],
        instructions="Render text faithfully in the target language, keep names and numbers, adapt idioms, and follow "
        "the terminology glossary. Ask when a sentence is ambiguous.",
    ),
    Card(
        "copy-editor",
        can=["proofread", "shorten texts"],
        instructions="Correct grammar, spelling and punctuation. Cut filler words, prefer the active voice, and keep "
        "the author's tone. Return tracked changes.",
    ),
    Card(
        "press-officer",
        role="public relations",
        can="write press releases",
        instructions="Prepare statements for journalists, answer media enquiries, collect newspaper coverage about the "
        "company and brief executives before interviews.",
    ),
    Card(
        "social-media-manager",
        can=["write posts", "answer comments"],
        instructions="Plan the content calendar for LinkedIn, Instagram and X, write captions and hashtags, reply to "
        "followers, and report engagement each week.",
    ),
    Card(
        "sales-assistant",
        can=["qualify leads", "prepare quotes"],
        instructions="Research a prospect, update the CRM, draft the proposal with discounts the manager allows, and "
        "follow up until the deal is won or lost.",
    ),
    Card(
        "customer-support",
        can=["answer customers", "issue refunds"],
        instructions="Reply to complaints about late parcels, damaged goods and wrong sizes. Look up the order, "
        "apologise once, offer a replacement or their money back.",
    ),
    Card(
        "warehouse-planner",
        role="logistics",
        can=["track inventory", "schedule deliveries"],
        instructions="Watch stock levels, reorder before shelves are empty, plan truck routes and pallets, and warn "
        "when a shipment is delayed at customs.",
    ),
    Card(
        "travel-agent",
        can="book business trips",
        instructions="Find flights, trains and hotels within budget, check visa rules, handle cancellations and put "
        "the itinerary into the calendar.",
    ),
    Card(
        "meeting-scribe",
        can=["take minutes", "transcribe recordings"],
        instructions="Listen to the audio of a call, write down who said what, and end with decisions, owners and "
        "open points. Send the summary to everybody who was invited.",
    ),
    Card(
        "librarian",
        role="company knowledge",
        can="search the wiki",
        instructions="Find policies, handbooks, how-tos and past decisions in the intranet, and quote the paragraph "
        "with its link. Say so when nothing is written down.",
    ),
    Card(
        "market-researcher",
        can=["research competitors", "run surveys"],
        instructions="Search the web for prices, features and news of rival products, design questionnaires, and sum "
        "up what buyers want, with sources.",
    ),
    Card(
        "facility-manager",
        role="looks after the building",
        can="arrange repairs",
        instructions="Deal with heating, lifts, lights, cleaning, parking permits, broken furniture and meeting room "
        "equipment. Call contractors and track what they did.",
    ),
)

IN_SCOPE: Final = (
    ("is this supplier charging us twice for the same purchase order?", "invoice-clerk"),
    ("match the invoices from March with our orders", "invoice-clerk"),
    ("which hotel receipts from the Berlin trip can be reimbursed", "expense-auditor"),
    ("audit the expenses of the sales team", "expense-auditor"),
    ("why is my net salary lower this month", "payroll"),
    ("explain the deductions on a payslip", "payroll"),
    ("go through these fifty CVs and tell me who to invite", "recruiter"),
    ("job ad for a backend engineer", "recruiter"),
    ("Anna starts on Monday, prepare her first day", "onboarding-buddy"),
    ("new employee needs a badge and mandatory training", "onboarding-buddy"),
    ("check the termination clause in this agreement", "contract-lawyer"),
    ("we need a non-disclosure agreement, an NDA, with a partner", "contract-lawyer"),
    ("a customer wants all her personal data erased", "privacy-officer"),
    ("do we have to report this data breach to the regulator", "privacy-officer"),
    ("look over my pull request", "code-reviewer"),
    ("spot race conditions in this diff", "code-reviewer"),
    ("cover this module with pytest", "test-writer"),
    ("add tests for the edge cases of parse_date", "test-writer"),
    ("ship version 2.4 to production", "release-manager"),
    ("roll back the last deployment, errors are rising", "release-manager"),
    ("checkout has been down for ten minutes, someone take charge of the outage", "incident-commander"),
    ("write a postmortem of last night's outage", "incident-commander"),
    ("this SQL query takes forever", "db-admin"),
    ("postgres replication is lagging behind", "db-admin"),
    ("I got a suspicious mail asking for my login", "security-analyst"),
    ("how urgent is it to patch this CVE", "security-analyst"),
    ("the printer on the third floor does not print", "helpdesk"),
    ("reset my VPN password", "helpdesk"),
    ("our AWS bill doubled, where is the waste", "cloud-accountant"),
    ("find idle instances in Azure", "cloud-accountant"),
    ("predict how many units we will sell in December", "data-scientist"),
    ("build a churn model from the subscription dataset", "data-scientist"),
    ("make a bar chart of revenue per region", "chart-maker"),
    ("plot these numbers as a line with labelled axes", "chart-maker"),
    ("remove duplicate rows from an Excel sheet", "spreadsheet-wizard"),
    ("pivot this csv by month", "spreadsheet-wizard"),
    ("put this manual into Spanish", "translator"),
    ("translate the contract summary from German into English", "translator"),
    ("fix the grammar and spelling of my article", "copy-editor"),
    ("proofread the annual report", "copy-editor"),
    ("a journalist wants a statement about the merger", "press-officer"),
    ("press release for the product launch", "press-officer"),
    ("three LinkedIn posts for next week with hashtags", "social-media-manager"),
    ("reply to the comments of our Instagram followers", "social-media-manager"),
    ("prepare a quote with ten percent discount for a prospect", "sales-assistant"),
    ("update the CRM and follow up on the deal with Acme", "sales-assistant"),
    ("the customer got damaged goods and wants a refund", "customer-support"),
    ("someone complains that their parcel is late", "customer-support"),
    ("how much stock of item 4711 is left", "warehouse-planner"),
    ("plan the truck routes for tomorrow's deliveries", "warehouse-planner"),
    ("I need a flight to Madrid and a hotel for two nights", "travel-agent"),
    ("do I need a visa for my business trip to India", "travel-agent"),
    ("transcribe the recording of the board call", "meeting-scribe"),
    ("who said what in yesterday's meeting, and what was decided", "meeting-scribe"),
    ("what does the handbook say about parental leave", "librarian"),
    ("search the intranet for our password policy", "librarian"),
    ("what do our competitors charge", "market-researcher"),
    ("design a survey about what buyers want", "market-researcher"),
    ("the lift is stuck again", "facility-manager"),
    ("heating in the meeting room is broken", "facility-manager"),
)

OUT_OF_SCOPE: Final = (
    "quantum physics theoretical framework",
    "compose a violin sonata in D minor",
    "how do I bake sourdough bread",
    "diagnose a rash on my arm",
    "who won the football world cup in 1998",
    "steer the telescope to Jupiter",
    "teach my dog to sit",
    "solve this Rubik's cube",
    "grow tomatoes on a balcony",
    "knit a pair of woollen socks",
    "predict the weather for Saturday's hike",
    "simulate protein folding",
    "tell me a bedtime story about dragons",
    "tune the strings of my guitar",
    "recommend a movie for tonight",
    "prove the Riemann hypothesis",
    "repair the carburettor of a motorcycle",
    "land a drone on a moving boat",
    "mix a cocktail without alcohol",
    "decode the genome of a mushroom",
)

TUNED: Final = (IN_SCOPE[::2], OUT_OF_SCOPE[::2])
KEPT: Final = (IN_SCOPE[1::2], OUT_OF_SCOPE[1::2])
