import { type DragEvent, useCallback, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useHealth } from "../../api/queries";
import { fromDrop, type PickedFile } from "../../base/drop";
import { Header } from "../../widgets/Header";
import { Failure } from "../../widgets/States";
import { AddDump } from "./AddDump";
import { CompareForm, type Picked } from "./CompareForm";
import { ComparisonList } from "./ComparisonList";
import { DumpList } from "./DumpList";
import classes from "./HomeView.module.css";
import { useUploads } from "./useUploads";

/** Start: compare two dumps, add dumps, find earlier comparisons. Files may be dropped anywhere. */
export function HomeView() {
  const { t } = useTranslation();
  const health = useHealth();
  const uploads = useUploads();
  const [picked, setPicked] = useState<Picked>({ target: null, golden: null });
  const [over, setOver] = useState(false);
  const depth = useRef(0);

  const drop = useCallback(
    async (event: DragEvent) => {
      event.preventDefault();
      depth.current = 0;
      setOver(false);
      const files: PickedFile[] = await fromDrop(event.dataTransfer);
      uploads.start(files);
    },
    [uploads],
  );
  const enter = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    depth.current += 1;
    setOver(true);
  };
  const leave = () => {
    depth.current = Math.max(0, depth.current - 1);
    if (depth.current === 0) setOver(false);
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut; buttons do the same
    <div
      className={classes.screen}
      onDragEnter={enter}
      onDragLeave={leave}
      onDragOver={(event) => event.dataTransfer.types.includes("Files") && event.preventDefault()}
      onDrop={(event) => void drop(event)}
    >
      <Header>
        <span className={`${classes.tagline} dim`}>{t("app.tagline")}</span>
        {health.data && <span className={`${classes.version} dim`}>{health.data.version}</span>}
      </Header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <h1 className="sr">{t("home.title")}</h1>
        {health.error && <Failure problem={health.error} onRetry={() => void health.refetch()} />}
        <div className={classes.top}>
          <CompareForm picked={picked} onPick={setPicked} />
          <AddDump uploads={uploads} over={over} picked={picked} onPick={setPicked} />
        </div>
        <ComparisonList />
        <DumpList picked={picked} onPick={setPicked} />
      </main>
    </div>
  );
}
