import { createTheme } from "@mantine/core";

/** Keys act again as soon as a dialog or menu is closed: what fades away still takes them. */
const GONE_AT_ONCE = { exitDuration: 0 };

export const theme = createTheme({
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif',
  fontFamilyMonospace: "var(--mono)",
  fontSizes: { xs: "11px", sm: "12px", md: "13px", lg: "15px", xl: "18px" },
  colors: {
    dark: [
      "#e4e8ee",
      "#bcc5d1",
      "#9ca7b6",
      "#6f7b8b",
      "#3b434f",
      "#323943",
      "#22272f",
      "#1b1f26",
      "#171b21",
      "#14171c",
    ],
  },
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 },
  defaultRadius: "sm",
  cursorType: "pointer",
  components: {
    Tooltip: { defaultProps: { openDelay: 350, withArrow: true, multiline: true, maw: 420, fz: "xs" } },
    Button: { defaultProps: { size: "xs" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    TextInput: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    Menu: { defaultProps: { shadow: "md", withinPortal: true, transitionProps: GONE_AT_ONCE } },
    Modal: { defaultProps: { transitionProps: GONE_AT_ONCE } },
  },
});
