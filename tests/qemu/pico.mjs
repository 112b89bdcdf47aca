// A Raspberry Pi Pico: the RP2040 of rp2040js, with an image in its flash.
// Usage: node pico.mjs RP2040JS IMAGE ADDRESS [GDB_PORT]
// Without a port its UART0 is at standard input and output.
import { readFileSync } from "node:fs";

const [library, image, address, port] = process.argv.slice(2);
const { Simulator } = await import(`${library}/dist/esm/index.js`);
const { GDBTCPServer } = await import(`${library}/dist/esm/gdb/gdb-tcp-server.js`);

const FLASH = 0x10000000;
const RESET = 0x05fa0004; // what a core writes to AIRCR to reset itself

const simulator = new Simulator();
const { rp2040 } = simulator;
const { core } = rp2040;
const quiet = () => {};
rp2040.logger = { debug: quiet, info: quiet, warn: quiet, error: console.error };
const begin = Number(address);
const bytes = readFileSync(image);
rp2040.flash.fill(0xff);
rp2040.flash.set(bytes, begin - FLASH);
if (begin === FLASH) {
  // What the boot ROM does: the second-stage boot loader is called in RAM.
  const BOOT = 0x20041f00;
  for (let i = 0; i < 256; ++i) rp2040.writeUint8(BOOT + i, bytes[i]);
  core.SP = BOOT;
  core.PC = BOOT;
  const ssi = rp2040.peripherals[0x18000];
  const write = ssi.writeUint32.bind(ssi);
  ssi.writeUint32 = (offset, value) => {
    console.error(`ssi ${offset.toString(16)} ${(value >>> 0).toString(16)}`);
    write(offset, value);
  };
} else {
  core.VTOR = begin;
  core.SP = bytes.readUInt32LE(0);
  core.PC = bytes.readUInt32LE(4) & ~1;
}

if (port) {
  new GDBTCPServer(simulator, Number(port));
} else {
  const uart = rp2040.uart[0];
  const left = [];
  uart.onByte = (byte) => process.stdout.write(Buffer.of(byte));
  process.stdin.on("data", (data) => left.push(...data));
  process.stdin.on("end", () => process.exit(0));
  // A line that is slower than the core: bytes come when the FIFO has room.
  setInterval(() => {
    while (left.length && !uart.rxFIFO.full) uart.feedByte(left.shift());
  }, 1);
  const { ppb } = rp2040;
  const write = ppb.writeUint32.bind(ppb);
  ppb.writeUint32 = (offset, value) => {
    if (offset === 0xd0c && value >>> 0 === RESET) process.exit(0);
    write(offset, value);
  };
  simulator.execute();
}
