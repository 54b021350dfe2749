/** Cookies that only this server reads: not scripts, not other sites, and no unencrypted connection where there is TLS. */

export type Cookie = {
  /** The name, with TLS including the prefix that prevents other hosts and unencrypted pages from setting it. */
  name: string;
  /** Returns the value in a Cookie header. Undefined if there is none, or if there are several, of which another site has set one. */
  read(header: string | null): string | undefined;
  /**
   * Returns a value for Set-Cookie. `value` must only contain characters that cookies allow; without `seconds` it lasts as long as the
   * browser session.
   */
  write(value: string, seconds?: number): string;
  /** Returns a value for Set-Cookie that deletes the cookie. */
  clear(): string;
};

const VALUE = /^[\w.~+/=-]*$/;

/** `publicUrl` is where browsers find the server. A page elsewhere may lead here with the cookie, but send no form. */
export function createCookie(publicUrl: string, bareName: string): Cookie {
  const isSecure = /^https:/i.test(publicUrl);
  const name = isSecure ? `__Host-${bareName}` : bareName;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    name,
    read(header) {
      const values = (header ?? "").split(";").flatMap((pair) => {
        const equals = pair.indexOf("=");
        return equals !== -1 && pair.slice(0, equals).trim() === name ? [pair.slice(equals + 1).trim()] : [];
      });
      return values.length === 1 ? values[0] : undefined;
    },
    write(value, seconds) {
      if (!VALUE.test(value)) throw new Error(`A cookie cannot hold this value: ${name}`);
      return `${name}=${value}; ${attributes}${seconds === undefined ? "" : `; Max-Age=${seconds}`}`;
    },
    clear: () => `${name}=; ${attributes}; Max-Age=0`,
  };
}
