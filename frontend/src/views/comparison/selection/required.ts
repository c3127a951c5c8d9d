import { type Context, useContext } from "react";

/** The value of a context that has no default. Throws outside of its provider. */
export function useRequired<T>(context: Context<T | null>): T {
  const value = useContext(context);
  if (value === null) throw new Error("a panel of the triage screen stands outside of it");
  return value;
}
