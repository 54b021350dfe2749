/** A socket of Bun's with as much around it as postgres.js asks for where nothing is copied, and no way round it. */

import { EventEmitter } from "node:events";
import type { Socket, TCPSocketConnectOptions } from "bun";

export type Address = { unix: string } | { hostname: string; port: number };

/** Who reads what comes once the driver has opened the session. `onClose` is called once. */
export type Reader = { onData(bytes: Buffer): void; onClose(error: Error | undefined): void };

/** Is there at once: what is written before it has connected waits, and that it cannot is an "error" and a "close". */
export class DriverSocket extends EventEmitter {
  readyState: "open" | "closed" = "open";
  #socket: Socket | undefined;
  #reader: Reader | undefined;
  /** What the kernel has not taken yet, in order. */
  #rest: Uint8Array[] = [];
  #keepAliveMs = 0;
  #isEnding = false;

  constructor(address: Address) {
    super();
    const socket = {
      open: (socket: Socket) => {
        // Nobody has waited for it.
        if (this.readyState === "closed") return void socket.terminate();
        this.#socket = socket;
        if (this.#keepAliveMs > 0) socket.setKeepAlive(true, this.#keepAliveMs);
        this.#flush();
      },
      // Every chunk is a buffer of its own: the driver keeps parts of it.
      data: (_: Socket, bytes: Buffer) => void (this.#reader ? this.#reader.onData(bytes) : this.emit("data", bytes)),
      drain: () => this.#flush(),
      error: (_: Socket, error: Error) => this.#close(error),
      close: (_: Socket, error?: Error) => this.#close(error),
      // Called before anybody listens, where the kernel knows at once.
      connectError: (_: Socket, error: Error) => void setImmediate(() => this.#close(error)),
    };
    Bun.connect({ ...address, socket } as TCPSocketConnectOptions).catch(() => {});
  }

  /** From now on what comes goes there and not to the driver, which still learns of the end. */
  take(reader: Reader): void {
    this.#reader = reader;
  }

  /** Whether all of it has been taken; what has not is copied, and goes first as soon as it can. */
  write(bytes: Uint8Array): boolean {
    if (this.readyState === "closed") return false;
    const taken = this.#rest.length === 0 && this.#socket ? Math.max(this.#socket.write(bytes), 0) : 0;
    if (taken === bytes.length) return true;
    this.#rest.push(new Uint8Array(bytes.subarray(taken)));
    return false;
  }

  #flush(): void {
    for (let next; (next = this.#rest[0]); this.#rest.shift()) {
      const taken = Math.max(this.#socket!.write(next), 0);
      if (taken < next.length) return void (this.#rest[0] = next.subarray(taken));
    }
    if (this.#isEnding) this.#socket!.end();
  }

  end(bytes: Uint8Array): void {
    this.#isEnding = true;
    if (this.write(bytes)) this.#socket?.end();
  }

  destroy(): void {
    this.#socket?.terminate();
    this.#close();
  }

  setKeepAlive(_: boolean, ms: number): void {
    this.#keepAliveMs = ms;
    this.#socket?.setKeepAlive(true, ms);
  }

  #close(error?: Error): void {
    if (this.readyState === "closed") return;
    this.readyState = "closed";
    if (error) this.emit("error", error);
    this.emit("close", error !== undefined);
    this.#reader?.onClose(error);
  }
}
