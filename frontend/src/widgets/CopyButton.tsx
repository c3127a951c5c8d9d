import { ActionIcon, Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { copyText } from "../base/clipboard";
import { Icon } from "./Icon";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();
  const [state, setState] = useState<"idle" | "done" | "refused">("idle");

  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 1600);
    return () => clearTimeout(timer);
  }, [state]);

  const copy = async () => setState((await copyText(text)) ? "done" : "refused");
  const tip = state === "done" ? t("app.copied") : state === "refused" ? t("app.copyFailed") : label;
  return (
    <Tooltip label={tip} opened={state === "idle" ? undefined : true}>
      <ActionIcon size="sm" aria-label={label} onClick={copy} color={state === "done" ? "teal" : "gray"}>
        <Icon name={state === "done" ? "check" : "copy"} />
      </ActionIcon>
    </Tooltip>
  );
}
