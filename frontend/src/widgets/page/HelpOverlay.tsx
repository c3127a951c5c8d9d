import { Kbd, Modal, Table } from "@mantine/core";
import type { ReactNode } from "react";
import type { KEY_HELP } from "../../base/address/keys";
import { SEARCH_HELP } from "../../base/address/searchTerms";
import { useTranslation } from "../../texts/useTranslation";
import { boundPanels } from "../basic/useKeys";
import { TERMS } from "../late/Term";

/** A mark and what it means. */
export interface MarkHelp {
  id: string;
  mark: ReactNode;
  text: string;
}

interface HelpOverlayProps {
  opened: boolean;
  onClose: () => void;
  /** Keys of the screen, before those of its panels. */
  keys: typeof KEY_HELP;
  /** Marks on the screen. */
  marks: readonly MarkHelp[];
  /** The search of the screen knows terms. */
  terms?: boolean;
}

/** Every key and every mark of a screen, in words. */
export function HelpOverlay({ opened, onClose, keys, marks, terms = false }: HelpOverlayProps) {
  const { t } = useTranslation();
  const panels = opened ? boundPanels().map(({ id, key, help }) => [key, `keys.${help ?? id}`] as const) : [];
  const rows = [...keys, ...panels];
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("keys.title")}
      size="xl"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      <p className="dim">{t("keys.hint")}</p>
      <div
        style={{
          display: "grid",
          gridTemplateColumns: "repeat(auto-fit, minmax(260px, 1fr))",
          alignItems: "start",
          gap: 16,
        }}
      >
        <Table verticalSpacing={3} withRowBorders={false} data-testid="keys">
          <Table.Tbody>
            {rows.map(([keys, text]) => (
              <Table.Tr key={keys}>
                <Table.Td style={{ whiteSpace: "nowrap" }}>
                  <Keys keys={keys.split(" ")} />
                </Table.Td>
                <Table.Td>{t(text as "keys.node")}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        <Table verticalSpacing={3} withRowBorders={false} data-testid="marks">
          <Table.Tbody>
            {marks.map(({ id, mark, text }) => (
              <Table.Tr key={id}>
                <Table.Td>{mark}</Table.Td>
                <Table.Td className="dim">{text}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {terms && <Words />}
      {terms && <SearchTerms />}
    </Modal>
  );
}

function Words() {
  const { t } = useTranslation();
  return (
    <>
      <h3 style={{ margin: "12px 0 0", fontSize: 13 }}>{t("glossary.title")}</h3>
      <p className="dim" style={{ margin: "2px 0 4px" }}>
        {t("glossary.hint")}
      </p>
      <Table verticalSpacing={3} withRowBorders={false} data-testid="glossary">
        <Table.Tbody>
          {TERMS.map((word) => (
            <Table.Tr key={word}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                <strong>{t(`glossary.names.${word}`)}</strong>
              </Table.Td>
              <Table.Td>{t(`glossary.${word}`)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

function SearchTerms() {
  const { t } = useTranslation();
  return (
    <>
      <h3 style={{ margin: "12px 0 0", fontSize: 13 }}>{t("search.title")}</h3>
      <p className="dim" style={{ margin: "2px 0 4px" }}>
        {t("search.hint")}
      </p>
      <Table verticalSpacing={3} withRowBorders={false} data-testid="search-terms">
        <Table.Tbody>
          {SEARCH_HELP.map(([example, text]) => (
            <Table.Tr key={example}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                <code>{example}</code>
              </Table.Td>
              <Table.Td>{t(`search.${text}`)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

/** Each key, of a long row the ends: `1 … 9`. */
function Keys({ keys }: { keys: readonly string[] }) {
  const long = keys.length > 3;
  return keys.map(
    (key, index) =>
      (!long || index === 0 || index === keys.length - 1) && (
        <span key={key}>
          {long && index > 0 && "… "}
          <Kbd size="xs" mr={3}>
            {key}
          </Kbd>
        </span>
      ),
  );
}
