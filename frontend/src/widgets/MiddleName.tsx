import { splitName } from "../base/names";
import classes from "./MiddleName.module.css";

/** A name that loses its middle, never its end; the text stays whole for copying, searching and screen readers. */
export function MiddleName({ name, tail = 20, title }: { name: string; tail?: number; title?: string }) {
  const [head, end] = splitName(name, tail);
  return (
    <bdi className={classes.name} title={title ?? name}>
      {head && <span className={classes.head}>{head}</span>}
      <span className={head ? classes.tail : classes.head}>{end}</span>
    </bdi>
  );
}
