import { Button, Modal, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { usePaths } from "../../../api/records";
import type { PathEntry } from "../../../api/types";
import { formatCount } from "../../../base/numbers/format";
import { joinPath } from "../../../base/text/serverPaths";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { MoreRows } from "../../../widgets/basic/MoreRows";
import { Empty, Failure, Loading } from "../../../widgets/basic/States";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import classes from "./PathPicker.module.css";

interface PathPickerProps {
  opened: boolean;
  onClose: () => void;
  onRegister: (path: string) => Promise<void>;
}

/** Walks the folders of the server below its roots, one at a time, and registers dumps. */
export function PathPicker({ opened, onClose, onRegister }: PathPickerProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("home.browse.title")}
      closeButtonProps={{ "aria-label": t("app.close") }}
      size="lg"
    >
      {opened && <Folder onRegister={onRegister} />}
    </Modal>
  );
}

function Folder({ onRegister }: Pick<PathPickerProps, "onRegister">) {
  const { t } = useTranslation();
  const [path, setPath] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [done, setDone] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState<unknown>(null);
  const q = useDebounced(text, 200);
  const query = usePaths(path, q);
  const pages = query.data?.pages ?? [];
  const folder = pages[0];
  const items = pages.flatMap((page) => page.items);

  const open = (next: string | null) => {
    setPath(next);
    setText("");
  };
  const register = (chosen: string) => {
    setProblem(null);
    onRegister(chosen).then(() => setDone((all) => new Set(all).add(chosen)), setProblem);
  };

  return (
    <div className={classes.picker} data-testid="path-picker">
      <div className={classes.head}>
        <Button
          variant="default"
          size="compact-xs"
          disabled={path === null}
          leftSection={<Icon name="left" size={12} />}
          onClick={() => open(folder?.parent ?? null)}
        >
          {t("home.browse.up")}
        </Button>
        <bdi className={`mono ${classes.place}`} title={folder?.path ?? undefined} data-testid="path-place">
          {folder?.path ?? path ?? t("home.browse.roots")}
        </bdi>
        {folder?.dump && folder.path !== null && (
          <Register path={folder.path} name={folder.path} done={done} onRegister={register} whole />
        )}
      </div>
      {path !== null && (
        <TextInput
          size="xs"
          aria-label={t("home.browse.search")}
          placeholder={t("home.browse.search")}
          leftSection={<Icon name="search" />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
      {problem !== null && <Failure problem={problem} />}
      {query.error && <Failure problem={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {folder && items.length === 0 && (
        <Empty>{q ? t("home.nothingFound", { query: q }) : t("home.browse.nothing")}</Empty>
      )}
      <ul className={classes.list}>
        {items.map((entry) => {
          const place = joinPath(folder?.path ?? null, entry.name);
          return (
            <Row
              key={entry.name}
              entry={entry}
              onOpen={() => open(place)}
              register={entry.dump && <Register path={place} name={entry.name} done={done} onRegister={register} />}
            />
          );
        })}
      </ul>
      <div className={`${classes.foot} dim num`}>
        {folder && t("home.shown", { shown: formatCount(items.length), total: formatCount(folder.total) })}
        {folder?.cut && ` · ${t("home.browse.cut")}`}
        <MoreRows list={query} />
      </div>
    </div>
  );
}

interface RowProps {
  entry: PathEntry;
  onOpen: () => void;
  register: ReactNode;
}

function Row({ entry, onOpen, register }: RowProps) {
  const { t } = useTranslation();
  return (
    <li className={classes.row} data-dump={entry.dump || undefined}>
      {entry.kind === "folder" ? (
        <button type="button" className={`plain ${classes.name}`} onClick={onOpen}>
          <Icon name="chevron" size={12} />
          <bdi>{entry.name}</bdi>
        </button>
      ) : (
        <span className={classes.name}>
          <Icon name="copy" size={12} />
          <bdi>{entry.name}</bdi>
        </span>
      )}
      {entry.dump && (
        <span className={`dim ${classes.kind}`}>
          {t(entry.kind === "archive" ? "home.browse.archive" : "home.browse.dump")}
        </span>
      )}
      {register}
    </li>
  );
}

interface RegisterProps {
  path: string;
  name: string;
  done: ReadonlySet<string>;
  onRegister: (path: string) => void;
  /** Of the folder that is open, rather than of one of its entries. */
  whole?: boolean;
}

function Register({ path, name, done, onRegister, whole }: RegisterProps) {
  const { t } = useTranslation();
  const registered = done.has(path);
  return (
    <Button
      variant="default"
      size="compact-xs"
      disabled={registered}
      aria-label={t("home.browse.registerOne", { name })}
      leftSection={registered && <Icon name="check" size={12} />}
      onClick={() => onRegister(path)}
    >
      {t(whole ? "home.browse.registerThis" : "home.register")}
    </Button>
  );
}
