import { createTheme } from "@mantine/core";

/** Things come and go at once: what fades away still takes keys, and what fades in cannot be read. */
const AT_ONCE = { duration: 0 };

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
    // A closed list is not there: a hidden one is laid out and measured when the page is drawn, each of a dozen.
    Combobox: { defaultProps: { keepMounted: false } },
    Select: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    Menu: { defaultProps: { shadow: "md", withinPortal: true, transitionProps: AT_ONCE } },
    Modal: { defaultProps: { transitionProps: AT_ONCE } },
    SegmentedControl: { defaultProps: { transitionDuration: AT_ONCE.duration } },
  },
});
