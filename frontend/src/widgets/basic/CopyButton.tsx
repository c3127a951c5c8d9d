import { ActionIcon } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { copyText } from "../../base/text/clipboard";
import { useTranslation } from "../../texts/useTranslation";
import { Hint } from "../late/Hint";
import { Icon } from "./Icon";

interface CopyButtonProps {
  text: string;
  label: string;
  /** Takes the focus once it is there: copying is what the dialog around it is opened for. */
  focused?: boolean;
}

export function CopyButton({ text, label, focused = false }: CopyButtonProps) {
  const { t } = useTranslation();
  const button = useRef<HTMLButtonElement>(null);
  const first = useRef(focused);
  const [state, setState] = useState<"idle" | "done" | "refused">("idle");

  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 1600);
    return () => clearTimeout(timer);
  }, [state]);

  useEffect(() => {
    if (first.current) button.current?.focus();
  }, []);

  const copy = async () => setState((await copyText(text)) ? "done" : "refused");
  const tip = state === "done" ? t("app.copied") : state === "refused" ? t("app.copyFailed") : label;
  return (
    <Hint label={tip} shown={state !== "idle"}>
      <ActionIcon
        ref={button}
        size="sm"
        aria-label={label}
        onClick={copy}
        color={state === "done" ? "teal" : "gray"}
        data-autofocus={focused || undefined}
      >
        <Icon name={state === "done" ? "check" : "copy"} />
      </ActionIcon>
    </Hint>
  );
}
