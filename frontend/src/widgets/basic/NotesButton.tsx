import type { ComponentProps } from "react";
import { Icon } from "./Icon";
import classes from "./Problems.module.css";

interface NotesButtonProps extends ComponentProps<"button"> {
  label: string;
  warn: boolean;
}

/** The count itself. */
export function NotesButton({ label, warn, ...rest }: NotesButtonProps) {
  return (
    <button type="button" className={`plain ${classes.button}`} data-warn={warn || undefined} {...rest}>
      {warn && <Icon name="warning" size={12} />}
      {label}
    </button>
  );
}
