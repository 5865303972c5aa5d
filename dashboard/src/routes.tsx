// Which page is shown at which path. The server answers the same paths with this page (server/page.py).
import type { ComponentType } from "preact";
import { match } from "./router";
import { AgentsPage } from "./pages/agents";
import { ApprovalsPage } from "./pages/approvals";
import { ContextPage } from "./pages/context";
import { Missing } from "./pages/missing";
import { RunsPage } from "./pages/runs";
import { SettingsPage } from "./pages/settings";
import { SpendPage } from "./pages/spend";
import { RunPage } from "./run/page";

export type PageOf = ComponentType<{ values: Record<string, string> }>;

const TABLE: [string, PageOf][] = [
  ["/", RunsPage],
  ["/runs", RunsPage],
  ["/runs/:id", RunPage],
  ["/approvals", ApprovalsPage],
  ["/approvals/:id", ApprovalsPage],
  ["/agents", AgentsPage],
  ["/agents/:name", AgentsPage],
  ["/context", ContextPage],
  ["/context/:namespace", ContextPage],
  ["/context/:namespace/:key", ContextPage],
  ["/spend", SpendPage],
  ["/settings", SettingsPage],
];

export function pageAt(path: string): { Page: PageOf; values: Record<string, string> } {
  for (const [pattern, Page] of TABLE) {
    const values = match(pattern, path);
    if (values) return { Page, values };
  }
  return { Page: Missing, values: {} };
}
