import { Kbd, Modal } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type RefObject, useEffect, useId, useMemo, useRef, useState } from "react";
import type { Action } from "../../base/address/keys";
import { wholeFirst } from "../../base/text/callNames";
import { useTranslation } from "../../texts/useTranslation";
import { MiddleName } from "../basic/MiddleName";
import { SearchField } from "../basic/SearchField";
import { useDebounced } from "../basic/useDebounced";
import { possibleCommands, runCommand } from "../basic/useKeys";
import { ClassMark } from "../marks/Mark";
import classes from "./Palette.module.css";
import type { Found, PaletteProps } from "./paletteProps";

const NODES = 8;
/** Of more a better match is chosen. */
const ASKED = 50;

type Choice = { kind: "command"; id: string; key: string; text: string } | { kind: "node"; node: Found };

interface ChoicesProps extends PaletteProps {
  /** What was typed before the field could take it; null once it can. */
  early: RefObject<string | null>;
  onClose: () => void;
}

interface DialogProps extends ChoicesProps {
  opened: boolean;
}

/** Every action of the screen by its words, and every node by its name. */
export function PaletteDialog({ opened, onClose, ...rest }: DialogProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      withCloseButton={false}
      title={<span className="sr">{t("palette.title")}</span>}
      classNames={{ header: classes.header, body: classes.body }}
      yOffset="12vh"
      transitionProps={{ duration: 0 }}
      returnFocus={false}
    >
      <Choices {...rest} onClose={onClose} />
    </Modal>
  );
}

function Choices({ scope, find, onNode, early, onClose }: ChoicesProps) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const query = useDebounced(text.trim(), 200);
  const list = useRef<HTMLDivElement>(null);
  const idBase = useId();
  const found = useQuery({
    queryKey: [...scope, "palette", query],
    queryFn: async () => wholeFirst(await find(query, ASKED), query).slice(0, NODES),
    enabled: query !== "",
    placeholderData: keepPreviousData,
  });
  const possible = useMemo(possibleCommands, []);
  const words = text.trim().toLowerCase().split(/\s+/);
  const choices: Choice[] = possible
    .map(({ id, key }) => ({ kind: "command" as const, id, key, text: t(`palette.actions.${id as Action}`) }))
    .filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)));
  if (query !== "") choices.push(...(found.data ?? []).map((node) => ({ kind: "node" as const, node })));
  const at = Math.min(active, choices.length - 1);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice is what moves the list
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at]);

  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    if (choice.kind === "node") onNode(choice.node.address);
    else setTimeout(() => runCommand(choice.id)); // the palette has left the page by then
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length > 0) {
      event.preventDefault();
      setActive((at + step + choices.length) % choices.length);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      choose(choices[at]);
    }
  };
  return (
    <>
      <SearchField
        data-autofocus
        label={t("palette.hint")}
        text={text}
        onText={(next) => {
          setText(next);
          setActive(0);
        }}
        onFocus={() => {
          setText((before) => before + (early.current ?? ""));
          early.current = null;
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded
        aria-controls={`${idBase}-list`}
        aria-activedescendant={choices.length > 0 ? `${idBase}-${at}` : undefined}
        data-testid="palette"
      />
      <div ref={list} id={`${idBase}-list`} className={classes.list} role="listbox" aria-label={t("palette.title")}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field above holds the focus
          <div
            key={choice.kind === "command" ? choice.id : `node ${choice.node.address}`}
            id={`${idBase}-${index}`}
            role="option"
            aria-selected={index === at}
            className={classes.choice}
            onMouseMove={() => setActive(index)}
            onClick={() => choose(choice)}
          >
            {choice.kind === "command" ? (
              <>
                <span>{choice.text}</span>
                <Kbd size="xs">{choice.key}</Kbd>
              </>
            ) : (
              <>
                <MiddleName name={choice.node.name} tail={28} />
                {choice.node.cls !== undefined && <ClassMark cls={choice.node.cls} words />}
              </>
            )}
          </div>
        ))}
      </div>
      {choices.length === 0 && <p className="dim">{t(found.isFetching ? "app.loading" : "palette.none")}</p>}
    </>
  );
}
