import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";

/** Light, dark, or as the system says. */
export function ThemeMenu() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon aria-label={t("app.theme")} data-testid="theme">
          <Icon name={colorScheme === "dark" ? "moon" : "sun"} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(["light", "dark", "auto"] as const).map((scheme) => (
          <Menu.Item
            key={scheme}
            leftSection={colorScheme === scheme ? <Icon name="check" /> : <span style={{ width: 14 }} />}
            onClick={() => setColorScheme(scheme)}
          >
            {t(`app.themes.${scheme}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
