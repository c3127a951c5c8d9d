import { Kbd, Modal, Table } from "@mantine/core";
import { KEY_HELP } from "../../base/address/keys";
import { SEARCH_HELP } from "../../base/address/searchTerms";
import { MARKS } from "../../base/comparison/verdicts";
import { useTranslation } from "../../texts/useTranslation";
import { boundPanels } from "../basic/useKeys";
import { TERMS } from "../late/Term";
import { WordMark } from "../marks/Mark";

/** Every key and every mark, in words. */
export function HelpOverlay({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const panels = opened ? boundPanels().map(({ id, key, help }) => [key, `keys.${help ?? id}`] as const) : [];
  const rows = [...KEY_HELP, ...panels];
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
        <Table verticalSpacing={3} withRowBorders={false}>
          <Table.Tbody>
            {MARKS.map((cls) => (
              <Table.Tr key={cls}>
                <Table.Td>
                  <WordMark word={cls} words />
                </Table.Td>
                <Table.Td className="dim">{t(`classHelp.${cls}`)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
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
    </Modal>
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
