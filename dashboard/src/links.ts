// The pages, with their addresses and the keys that lead there.
export const LINKS: [string, string, string][] = [
  ["/", "Runs", "r"],
  ["/approvals", "Approvals", "a"],
  ["/agents", "Agents", "g"],
  ["/context", "Context", "c"],
  ["/spend", "Spend", "s"],
  ["/settings", "Settings", "e"],
];
