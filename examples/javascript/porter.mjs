// A member of a team in JavaScript. It asks a model through the gateway and a colleague over MCP, with fetch alone.
import { text } from "node:stream/consumers";

const { OPENAI_BASE_URL, REMIT_MCP, REMIT_TOKEN } = process.env; // remit sets these; there is no key of a provider
const headers = { authorization: `Bearer ${REMIT_TOKEN}`, "content-type": "application/json" };

async function post(url, body) {
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await answer.text();
  if (!answer.ok) throw new Error(said); // a refusal says what to do
  const session = answer.headers.get("mcp-session-id");
  if (session) headers["mcp-session-id"] = session;
  const lines = said.split(/\r?\n/).filter((line) => line.startsWith("data: {"));
  return JSON.parse(lines.length ? lines.at(-1).slice(6) : said || "{}"); // a stream of events, or an object
}

async function ask(prompt) {
  const messages = [{ role: "user", content: prompt }];
  const answer = await post(`${OPENAI_BASE_URL}/chat/completions`, { model: "gpt-5-mini", messages });
  return answer.choices[0].message.content;
}

async function verb(name, given) {
  headers.accept = "application/json, text/event-stream";
  const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "porter", version: "1" } };
  await post(REMIT_MCP, { jsonrpc: "2.0", id: 1, method: "initialize", params: hello });
  await post(REMIT_MCP, { jsonrpc: "2.0", method: "notifications/initialized" });
  const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name, arguments: given } };
  const { result, error } = await post(REMIT_MCP, call);
  if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
  return result.content[0].text;
}

const ported = await ask(`Port this to JavaScript, and say nothing else: ${await text(process.stdin)}`);
const review = await verb("call_agent", { agent: "reviewer", task: `Review this: ${ported}` });
console.log(`${ported}\n${review}`);
