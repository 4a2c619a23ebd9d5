// SPDX-License-Identifier: MIT OR Apache-2.0
// Worker threads that share memory, wait for each other by Atomics, pass messages and start others. argv[2]: per cent of the work.
const { Worker, isMainThread, workerData, parentPort } = require("worker_threads");

const WORKERS = 4;

function work({ cells, index, rounds }) {
    const shared = new Int32Array(cells);
    for (let i = 0; i < rounds; i++) {
        while (Atomics.load(shared, 1) % WORKERS !== index) {
            Atomics.wait(shared, 1, Atomics.load(shared, 1), 10);
        }
        shared[0] += 1; // whose turn it is has it alone
        Atomics.add(shared, 1, 1);
        Atomics.notify(shared, 1);
        parentPort.postMessage(new Array(100).fill(i));
    }
}

async function main() {
    const rounds = 5 * Number(process.argv[2]);
    const cells = new SharedArrayBuffer(8);
    let messages = 0;
    await Promise.all(
        Array.from({ length: WORKERS }, (_, index) => new Promise((resolve, reject) => {
            const worker = new Worker(__filename, { workerData: { cells, index, rounds } });
            worker.on("message", () => messages++);
            worker.on("error", reject);
            worker.on("exit", resolve);
        })),
    );
    const [sum, turns] = new Int32Array(cells);
    if (sum !== WORKERS * rounds || turns !== sum || messages !== sum) {
        throw new Error(`${sum} additions, ${turns} turns, ${messages} messages instead of ${WORKERS * rounds}`);
    }
    console.log(`checked: ${sum} additions, ${messages} messages`);
}

if (isMainThread) {
    main();
} else {
    work(workerData);
}
