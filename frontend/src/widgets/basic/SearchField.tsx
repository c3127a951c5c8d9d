import { CloseButton, TextInput, type TextInputProps } from "@mantine/core";
import { type KeyboardEvent, memo } from "react";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "./Icon";

interface SearchFieldProps
  extends Omit<TextInputProps, "value" | "onChange" | "type" | "leftSection" | "rightSection"> {
  label: string;
  text: string;
  onText: (text: string) => void;
}

/** A field to search by. Escape empties it; where it is empty, Escape leaves it as it leaves every field. */
export const SearchField = memo(function SearchField({
  label,
  text,
  onText,
  onKeyDown,
  placeholder,
  ...rest
}: SearchFieldProps) {
  const { t } = useTranslation();
  const press = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Escape" && text !== "") {
      event.preventDefault();
      event.stopPropagation();
      onText("");
    }
    onKeyDown?.(event);
  };
  return (
    <TextInput
      {...rest}
      type="search"
      aria-label={label}
      placeholder={placeholder ?? label}
      leftSection={<Icon name="search" size={12} />}
      rightSection={text && <CloseButton size="xs" aria-label={t("app.clear")} onClick={() => onText("")} />}
      value={text}
      onChange={(event) => onText(event.currentTarget.value)}
      onKeyDown={press}
    />
  );
});
