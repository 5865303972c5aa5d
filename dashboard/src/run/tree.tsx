// The tree as a picture.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Arcs, EdgeView, LabelView, RefusedEdge, StackEdge } from "./edges";
import type { Box, Layout } from "./layout";
import type { RunModel } from "./model";
import { ChipView, NodeView, StackView } from "./node";

const MARGIN = 24;
const FOOT = 60; // room for the tools below the tree
const MANY = 120; // with more boxes than that, only those in sight are drawn
const BESIDE = 160; // pixels around what is in sight

interface Sight {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function inSight(boxes: readonly Box[], sight: Sight, scale: number): readonly Box[] {
  if (boxes.length <= MANY) return boxes;
  const near = (low: number, high: number, from: number, length: number) =>
    high * scale > from - BESIDE && low * scale < from + length + BESIDE;
  return boxes.filter(
    (box) =>
      near(box.y, box.y + box.height, sight.top, sight.height) &&
      near(box.from === undefined ? box.x : box.from.x, box.x + box.width, sight.left, sight.width),
  );
}

function fitting({ width, height }: Layout, sight: Sight): number {
  const wide = (sight.width - 2 * MARGIN) / Math.max(1, width);
  const high = (sight.height - MARGIN - FOOT) / Math.max(1, height);
  return Math.min(1, Math.max(0.72, Math.min(wide, high)));
}

function useSight() {
  const ref = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState<Sight>({ left: 0, top: 0, width: 1000, height: 480 });
  useLayoutEffect(() => {
    const el = ref.current;
    if (el === null) return;
    const look = () =>
      setSight((before) => {
        const { scrollLeft: left, scrollTop: top, clientWidth: width, clientHeight: height } = el;
        const same = before.left === left && before.top === top && before.width === width && before.height === height;
        return same ? before : { left, top, width, height };
      });
    const watch = new ResizeObserver(look);
    watch.observe(el); // it looks at once, when the browser has laid out the page
    el.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, []);
  return { ref, sight };
}

export function Tree({ model }: { model: RunModel }) {
  const { ref, sight } = useSight();
  const [zoom, setZoom] = useState(0); // 0: as it fits
  const all = model.layout.value;
  const scale = zoom === 0 ? fitting(all, sight) : zoom;
  const choose = (event: MouseEvent) => {
    const key = (event.target as Element).closest("[data-key]")?.getAttribute("data-key") ?? "";
    if (key !== "") chooseKey(model, key);
  };
  return (
    <div class={model.crowded.value ? "tree crowded" : "tree"}>
      <div class="treescroll" ref={ref} onClick={choose} aria-hidden="true">
        <div class="room" style={{ width: `${all.width * scale + 2 * MARGIN}px`, height: `${all.height * scale + MARGIN + FOOT}px` }}>
          <div class="stage" style={{ width: `${all.width}px`, height: `${all.height}px`, transform: `scale(${scale})` }}>
            <Drawn model={model} boxes={inSight(all.boxes, sight, scale)} />
          </div>
        </div>
      </div>
      <Tools model={model} zoom={(by) => setZoom(by === 0 ? 0 : Math.min(1.6, Math.max(0.3, scale + by)))} />
    </div>
  );
}

function Drawn({ model, boxes }: { model: RunModel; boxes: readonly Box[] }) {
  return (
    <>
      <svg class="edges" width="100%" height="100%">
        {boxes.map((box) =>
          box.kind === "node" ? (
            <EdgeView key={box.key} model={model} box={box} />
          ) : box.kind === "stack" ? (
            <StackEdge key={box.key} model={model} box={box} />
          ) : (
            <RefusedEdge key={box.key} model={model} box={box} />
          ),
        )}
        {boxes.map((box) => box.kind !== "chip" && <LabelView key={box.key} model={model} box={box} />)}
        <Arcs model={model} boxes={boxes} />
      </svg>
      {boxes.map((box) =>
        box.kind === "node" ? (
          <NodeView key={box.key} model={model} box={box} />
        ) : box.kind === "stack" ? (
          <StackView key={box.key} model={model} box={box} />
        ) : (
          <ChipView key={box.key} model={model} box={box} />
        ),
      )}
    </>
  );
}

/** Show a node in the drawer: a task, a stack, or the refusals of the asker of a chip. */
export function chooseKey(model: RunModel, key: string): void {
  const [kind, asker] = key.split(" ");
  if (kind === "chip" && asker !== undefined) {
    model.chosen.value = asker;
    model.tab.value = "Refused";
  } else model.chosen.value = key;
}

function Tools({ model, zoom }: { model: RunModel; zoom: (by: number) => void }) {
  const shows = model.labels.value;
  return (
    <div class="under">
      <div class="tools" role="toolbar" aria-label="Tree">
        <button type="button" onClick={() => zoom(0)}>Fit</button>
        <button type="button" aria-label="Smaller" onClick={() => zoom(-0.1)}>−</button>
        <button type="button" aria-label="Larger" onClick={() => zoom(0.1)}>+</button>
        <button type="button" aria-pressed={shows === "context"} onClick={() => (model.labels.value = "context")}>Context</button>
        <button type="button" aria-pressed={shows === "money"} onClick={() => (model.labels.value = "money")}>Money</button>
      </div>
      <Legend />
    </div>
  );
}

function Legend() {
  return (
    <div class="legend" aria-hidden="true">
      <span>
        <svg width="26" height="12">
          <path d="M1 6H25" stroke="var(--cash-m)" stroke-width="9" opacity=".2" />
          <path d="M1 6H25" stroke="var(--cash-m)" stroke-width="4" opacity=".85" />
        </svg>
        set aside, spent
      </span>
      <span>
        <svg width="22" height="8">
          <path class="refusededge" d="M1 4H21" />
        </svg>
        refused
      </span>
    </div>
  );
}
