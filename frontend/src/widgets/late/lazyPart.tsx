/** Parts of the page whose scripts come when they are first needed, or when the browser has nothing else to do. */
import { type ComponentType, type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { restOfTexts } from "../../texts";
import { expectPart } from "./heldKeys";
import { PartMissing } from "./PartMissing";
import { painted, whole } from "./painted";

interface LazyProps {
  /** Stands in its place until it is there: of the same size, so that nothing moves. */
  fallback?: ReactNode;
}

interface LazyOptions {
  /** It lies over the page (a dialog), so every key pressed meanwhile is for it. With `opened` false it is not wanted yet. */
  overlay?: boolean;
  /** It comes behind the answer: `painted`. */
  late?: boolean;
  /** It shows the answer: it waits for no more texts than that has. */
  first?: boolean;
}

export type LazyPart<Props> = ((props: Props & LazyProps) => ReactNode) & {
  /** Has the script come; a failure is told only where the part is shown. */
  preload: () => Promise<void>;
};

/** The script of a part: on its way once, there for good, and asked for again after a failure. */
class Script<Props> {
  body: ComponentType<Props> | null = null;
  private pending: Promise<void> | null = null;
  private readonly watchers = new Set<() => void>();

  constructor(private readonly load: () => Promise<ComponentType<Props>>) {}

  readonly subscribe = (tell: () => void) => {
    this.watchers.add(tell);
    return () => this.watchers.delete(tell);
  };

  come(): Promise<void> {
    this.pending ??= this.load()
      .then((body) => {
        this.body = body;
        for (const tell of this.watchers) tell();
      })
      .finally(() => {
        this.pending = null;
      });
    return this.pending;
  }
}

export function lazyPart<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  { overlay = false, late = false, first = false }: LazyOptions = {},
): LazyPart<Props> {
  const withTexts = async () => (first ? await load() : (await Promise.all([load(), restOfTexts()]))[0]);
  const script = new Script(late ? () => painted.then(withTexts) : withTexts);
  return Object.assign(
    (props: Props & LazyProps) => <Part script={script as Script<object>} overlay={overlay} props={props} />,
    { preload: () => (script.body ? Promise.resolve() : script.come().catch(() => undefined)) },
  );
}

interface PartProps {
  script: Script<object>;
  overlay: boolean;
  props: LazyProps & { opened?: boolean };
}

function Part({ script, overlay, props: { fallback = null, ...props } }: PartProps) {
  const Body = useSyncExternalStore(script.subscribe, () => script.body);
  const [failed, setFailed] = useState(false);
  const waiting = Body === null && !failed && props.opened !== false;
  useEffect(() => {
    if (!waiting) return;
    const arrive = expectPart(overlay ? "overlay" : "part");
    script.come().catch(() => setFailed(true));
    return arrive; // called when it is drawn, when it failed, and when nobody wants it any more
  }, [waiting, overlay, script]);
  if (Body) return <Body {...props} />;
  if (failed) return <PartMissing overlay={overlay} onRetry={() => setFailed(false)} />;
  return overlay ? null : fallback;
}

/** Has parts come when the screen is whole and at rest. */
export function useIdlePreload(parts: readonly { preload: () => Promise<void> }[], when: boolean): void {
  useEffect(() => {
    if (!when) return;
    const rest = window.requestIdleCallback ?? ((run: () => void) => window.setTimeout(run, 200));
    void whole.then(() =>
      rest(() => {
        for (const { preload } of parts) void preload();
      }),
    );
  }, [parts, when]);
}
