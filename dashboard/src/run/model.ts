// What the page of a run knows: its events, the moment that is shown, and the task that is chosen.
import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError, call } from "../api";
import type { JournalEvent } from "../fold/events";
import { History } from "../fold/history";
import { isOver } from "../fold/lifecycle";
import { sentence } from "../fold/sentence";
import { openQuestion, type Question, rootOf, type RunState, type Task } from "../fold/state";
import { Beats } from "../parts/beats";
import type { WorkerRow } from "../shapes";
import { answers } from "../speaking";
import { type Gap, listen, onGap, onOpened } from "../stream";
import { layout, type Layout } from "./layout";

/** A moment of the past: how many events had happened, and the time. */
export interface Moment {
  readonly count: number;
  readonly time: number;
}

/** What the person does with a question: changes it, says why not, or has sent a decision. */
export interface Acting {
  readonly question: string;
  readonly how: "" | "edit" | "reject" | "sent";
}
const NOTHING: Acting = { question: "", how: "" };

interface EventPage {
  events: JournalEvent[];
  gaps: [number, number][];
  next: string | null;
}

const PAGE = 1_000;
const TICK = 250; // milliseconds between two looks at the clock
const LARGE = 150; // tasks
const CROWD = 24; // open tasks
const CALM = 120; // milliseconds between two changes of the page of a large run

export class RunModel {
  readonly history = new History();
  readonly moment = signal<Moment | null>(null);
  readonly chosen = signal("");
  readonly tab = signal("");
  readonly labels = signal<"context" | "money">("context");
  readonly hovered = signal(""); // a context key
  readonly clock = signal(Date.now() * 1_000);
  readonly loaded = signal(false);
  readonly problem = signal<ApiError | null>(null);
  readonly gaps = signal<readonly Gap[]>([]);
  readonly acting = signal<Acting>(NOTHING); // the question that is being edited or rejected
  readonly workers = signal<ReadonlySet<string> | null>(null); // those that are alive
  private readonly beats = new Beats();
  private readonly version = signal(0);
  private readonly stops: (() => void)[] = [];
  private waiting: JournalEvent[] = [];
  private reading: Promise<void> | undefined;
  private frame = 0;

  constructor(readonly id: string) {}

  readonly whole = computed((): RunState => {
    this.version.value;
    return this.history.now;
  });
  readonly state = computed((): RunState => {
    const moment = this.moment.value;
    const whole = this.whole.value;
    return moment === null ? whole : this.history.at(moment.count);
  });
  readonly root = computed(() => rootOf(this.state.value));
  readonly over = computed(() => {
    const root = rootOf(this.whole.value);
    return root !== undefined && this.whole.value.open === 0 && isOver(root.state);
  });
  /** The end of the axis of time. */
  readonly end = computed(() =>
    this.over.value ? this.whole.value.last : Math.max(this.whole.value.last, this.clock.value),
  );
  /** The time that is shown. */
  readonly now = computed(() => this.moment.value?.time ?? this.end.value);
  private shape = -1;
  private kept: Layout = { boxes: [], width: 0, height: 0 };
  /** Positions come from the whole run, so that nothing moves while a person looks at the past. */
  readonly layout = computed((): Layout => {
    const whole = this.whole.value;
    if (whole.shape !== this.shape) {
      this.shape = whole.shape;
      this.kept = layout(whole);
    }
    return this.kept;
  });
  readonly questions = computed((): [Task, Question][] => {
    const { asking, tasks } = this.state.value;
    return asking.flatMap((id): [Task, Question][] => {
      const task = tasks.get(id);
      const question = task === undefined ? undefined : openQuestion(task);
      return task === undefined || question === undefined ? [] : [[task, question]];
    });
  });
  /** The task in the drawer: the chosen one, else the one that waits for a person, else the first. */
  readonly task = computed((): Task | undefined => {
    const { tasks } = this.state.value;
    return tasks.get(this.chosen.value) ?? this.questions.value[0]?.[0] ?? this.root.value;
  });

  // Parts that most of the page needs and that seldom change: who reads these is not drawn again with every event.
  readonly shownId = computed(() => this.task.value?.id ?? "");
  readonly granted = computed(() => this.root.value?.granted);
  /** What the widths of edges are measured by: what the run was given, or what it has spent, in steps of a factor. */
  readonly measure = computed(() => this.granted.value ?? 2 ** Math.ceil(Math.log2(Math.max(1, this.root.value?.total ?? 1))));

  readonly sentence = computed(() => sentence(this.state.value));
  /** How many agents have worked in the run. */
  readonly agents = computed(() => {
    const names = new Set<string>();
    for (const task of this.state.value.tasks.values()) {
      names.add(task.agent);
      for (const one of task.trail) if (!one.parallel && one.sentBack === "") names.add(one.sender);
    }
    return names.size;
  });
  /** Whether there are so many tasks that the page changes less often. */
  readonly large = computed(() => this.whole.value.tasks.size > LARGE);
  /** Whether so many tasks are open that none pulses: to draw each of them in each frame takes long. */
  readonly crowded = computed(() => this.whole.value.open > CROWD);

  /** Read the run, and go on with the stream. Return a function that stops. */
  start(): () => void {
    this.stops.push(
      listen((events) => this.hear(events.filter((event) => event.run === this.id || event.kind === "runs.pruned"))),
      onGap((first, last) => (this.gaps.value = [...this.gaps.value, { first, last }])),
      onOpened(() => void this.catchUp()),
    );
    let ticks = 0;
    const timer = setInterval(() => ticks++ % (this.large.value ? 4 : 1) === 0 && this.tick(), TICK);
    const looking = effect(() => {
      if (!this.over.value) void this.look();
    });
    const again = setInterval(() => !this.over.value && void this.look(), 10_000);
    this.stops.push(() => clearInterval(timer), looking, () => clearInterval(again));
    void this.catchUp();
    return () => this.stop();
  }

  private stop(): void {
    for (const stop of this.stops.splice(0)) stop();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.frame);
  }

  private tick(): void {
    if (!this.over.value && this.moment.value === null) this.clock.value = Date.now() * 1_000;
  }

  /** Read which workers are alive: a task of another one is drawn hollow. */
  private async look(): Promise<void> {
    try {
      const { workers } = await call<{ workers: WorkerRow[] }>("GET", "/v1/workers");
      this.workers.value = this.beats.alive(workers, Date.now() * 1_000);
    } catch {
      this.workers.value = null; // not known, so nothing is drawn hollow
    }
  }

  /** Read what is new. Events of the stream wait meanwhile, so that none is taken before an earlier one. */
  catchUp(): Promise<void> {
    this.reading ??= this.read().finally(() => {
      this.reading = undefined;
      this.take([]);
    });
    return this.reading;
  }

  private async read(): Promise<void> {
    try {
      for (let more = true; more; ) {
        const query = new URLSearchParams({ run: this.id, after: String(this.history.seq), limit: String(PAGE) });
        const page = await call<EventPage>("GET", `/v1/events?${query}`);
        this.add(page.events);
        if (this.history.events.length === 0)
          this.gaps.value = page.gaps.map(([first, last]) => ({ first, last }));
        more = page.next !== null;
      }
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem.value = error;
    }
    this.loaded.value = true;
  }

  private hear(events: readonly JournalEvent[]): void {
    if (events.length === 0) return;
    this.waiting.push(...events);
    if (this.reading !== undefined || this.frame !== 0) return;
    this.frame = soon(() => {
      this.frame = 0;
      if (this.reading === undefined) this.take([]);
    }, document.hidden || this.large.peek());
  }

  private take(events: readonly JournalEvent[]): void {
    const all = [...events, ...this.waiting.splice(0).filter((event) => event.run === this.id)];
    this.add(all.sort((one, other) => one.seq - other.seq));
  }

  private add(events: readonly JournalEvent[]): void {
    batch(() => {
      if (this.history.add(events) > 0) this.version.value++;
      if (this.moment.value === null) this.clock.value = Date.now() * 1_000;
    });
  }

  /** What the model of a task is saying, now. */
  saying(task: string): string {
    return this.moment.value === null ? (answers.value.get(task)?.text ?? "") : "";
  }

  // -- moments ------------------------------------------------------------------------------------------------------

  /** Show the run as it was at a time; from the end on, as it is now. */
  showAt(time: number): void {
    const count = this.history.countAt(time);
    const last = this.over.value ? this.whole.value.last : this.end.value;
    if (time >= last) this.moment.value = null;
    else if (count > 0) this.moment.value = { count, time };
    else this.moment.value = { count: Math.min(1, this.history.events.length), time: this.whole.value.first };
  }

  /** Go some events forward or back. */
  step(by: number): void {
    const { events } = this.history;
    const count = Math.max(1, (this.moment.value?.count ?? events.length) + by);
    if (count >= events.length && by > 0) this.moment.value = null;
    else {
      const at = Math.min(count, events.length);
      const event = events[at - 1];
      if (event !== undefined) this.moment.value = { count: at, time: event.at };
    }
  }

  backToNow(): void {
    this.moment.value = null;
    this.clock.value = Date.now() * 1_000;
  }
}

/** One change of the page for all events of a frame, or of a moment: a hidden page has no frames, and drawing a large
 * run takes long. */
const soon = (go: () => void, later: boolean): number =>
  later ? (setTimeout(go, CALM) as unknown as number) : requestAnimationFrame(go);
