import { Popover } from "@mantine/core";
import type { ReactNode } from "react";
import { NotesButton } from "./NotesButton";
import classes from "./Problems.module.css";

interface NotesPopupProps {
  label: string;
  warn: boolean;
  testId?: string | undefined;
  /** It was clicked before it was here. */
  opened: boolean;
  children: ReactNode;
}

/** A count that opens to the list it counts. */
export function NotesPopup({ label, warn, testId, opened, children }: NotesPopupProps) {
  return (
    <Popover
      position="bottom-start"
      shadow="md"
      width="max-content"
      withinPortal
      trapFocus={false}
      defaultOpened={opened}
    >
      <Popover.Target>
        <NotesButton label={label} warn={warn} data-testid={testId} />
      </Popover.Target>
      <Popover.Dropdown className={classes.list}>{children}</Popover.Dropdown>
    </Popover>
  );
}
