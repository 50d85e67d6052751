"""Clients of the Forrst protocol, as threads.

forrst.py NAME THREADS CALLS URL...

Each thread makes so many calls that need one lock. One that gets no answer, or is told that it may try again, sends
the same request to the next server, until it has been done."""
import http.client, json, sys, threading, urllib.error, urllib.request

name, threads, calls, urls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
RETRYABLE = {"LOCK_ACQUISITION_FAILED", "LOCK_TIMEOUT", "UNAVAILABLE"}


def say(*words):
    """In one piece: print writes word by word, between which other threads have their turn."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def request(ident):
    return json.dumps({
        "protocol": {"name": "forrst", "version": "0.1.0"}, "id": ident,
        "call": {"function": "work", "version": "1.0.0", "arguments": {"work": 0.005}},
        "extensions": [{"urn": "urn:forrst:ext:atomicLock", "options": {
            "key": "shared", "ttl": {"value": 3, "unit": "second"}, "block": {"value": 1, "unit": "minute"}}}],
    }).encode()


def send(url, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=90) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


def work(thread):
    for call in range(calls):
        ident = "%s-%d-%d" % (name, thread, call)
        body = request(ident)
        server = thread
        while True:
            try:
                answer = send(urls[server % len(urls)], body)
            except (OSError, ValueError, http.client.HTTPException):
                answer = {"errors": [{"code": "UNAVAILABLE"}]}
            codes = {error["code"] for error in answer.get("errors", [])}
            if not codes:
                assert answer["result"] == {"done": ident}, answer
                say("done", ident)
                break
            if not codes & RETRYABLE:
                say("failed", ident, answer)
                break
            server += 1


workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
