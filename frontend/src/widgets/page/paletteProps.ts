/** What the palette finds, and what it does with it. */
export interface Found {
  name: string;
  address: string;
  cls?: string;
}

export interface PaletteProps {
  /** Key of what the nodes belong to; a change starts a new search. */
  scope: readonly unknown[];
  /** Nodes whose name has a text, the worst first. */
  find: (text: string, limit: number) => Promise<readonly Found[]>;
  onNode: (address: string) => void;
}
