import { splitName } from "../../base/text/callNames";
import classes from "./MiddleName.module.css";

/** A name that may lose its middle, never its end; without `tail` it loses its start. The text stays whole for copying,
 * searching and screen readers. */
export function MiddleName({ name, tail, title }: { name: string; tail?: number; title?: string }) {
  const [head, end] = splitName(name, tail ?? Number.POSITIVE_INFINITY);
  return (
    <bdi className={classes.name} title={title ?? name}>
      {head && <span className={classes.head}>{head}</span>}
      <span className={classes.tail}>
        <bdi dir="ltr">{end}</bdi>
      </span>
    </bdi>
  );
}
