"""A server of the Forrst protocol that has every function, and says when a call begins and ends.

upstream.py ADDRESS PORT

A call takes as many seconds as its argument "work" says, also if its client has gone. With an argument "page" it answers
that, as a server would that is busy and knows nothing of the protocol."""
import http.server, json, sys, threading, time

saying = threading.Lock()


def say(*words):
    with saying:
        print(*words, flush=True)


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        say("enter", call["id"], self.headers.get("Forrst-Lock-Token", "-"))
        time.sleep(call["call"]["arguments"].get("work", 0))
        say("leave", call["id"])
        answer = {"protocol": call["protocol"], "id": call["id"], "result": {"done": call["id"]}}
        body = json.dumps(answer).encode()
        page = call["call"]["arguments"].get("page")
        if page is not None:
            body = page.encode()
        self.send_response(200 if page is None else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 100

    def handle_error(self, *_):
        pass


server = Server((sys.argv[1], int(sys.argv[2])), Upstream)
say("ready")
server.serve_forever()
