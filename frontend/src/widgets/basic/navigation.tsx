/** The address as React state, and links that do not reload the page. */
import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useMemo, useSyncExternalStore } from "react";
import { type Address, applyChange, formatAddress, parseAddress } from "../../base/address/address";
import { getLocation, hrefOf, navigate, type PageLocation, subscribeLocation } from "../../base/address/location";

export function useLocation(): PageLocation {
  return useSyncExternalStore(subscribeLocation, getLocation);
}

/** The path alone: what shows a screen is not drawn anew with each key on it. */
export function usePath(): string {
  return useSyncExternalStore(subscribeLocation, () => getLocation().path);
}

export type UpdateAddress = (change: Partial<Address>, replace?: boolean) => void;

/** The address as it is now, also between a change of it and the next drawing. */
export function currentAddress(): Address {
  return parseAddress(getLocation().search);
}

/** The address of this screen and a way to change parts of it; `replace` leaves no step for the back button. */
export function useAddress(): [Address, UpdateAddress] {
  const { search } = useLocation();
  const address = useMemo(() => parseAddress(search), [search]);
  const update = useCallback<UpdateAddress>((change, replace = false) => {
    navigate(getLocation().path, formatAddress(applyChange(currentAddress(), change)), replace);
  }, []);
  return [address, update];
}

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
  search?: string;
}

export function Link({ to, search = "", onClick, ...rest }: LinkProps) {
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to, search);
  };
  return <a {...rest} href={hrefOf(to, search)} onClick={go} />;
}
