package load

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Floor is what a crowd's leases cost at the least: a server whose clients each send a frame of the size of a renewal and are answered one, with
// others at the same moment, so many times a second. It does nothing else.
type Floor struct {
	Address string
	Clients int           // 0: it is the server
	Every   time.Duration // a client is answered
	Tick    time.Duration // and what lies between two moments at which some are
}

const (
	floorWord = "crowd-floor"
	frameSize = 50 // bytes, of a renewal and its answer
)

// Args is the command line of a process of this program that does it.
func (f *Floor) Args() []string {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err) // it has nothing that could not be
	}
	return []string{floorWord, string(data)}
}

func (f *Floor) do() error {
	if f.Clients == 0 {
		return f.serve()
	}
	var answered sync.WaitGroup
	answered.Add(f.Clients)
	failed := make(chan error, f.Clients)
	for range f.Clients {
		conn, err := net.Dial("tcp", f.Address)
		if err != nil {
			return err
		}
		go func() {
			frame := make([]byte, frameSize)
			var first sync.Once
			for {
				_, err := conn.Write(frame)
				if err == nil {
					_, err = io.ReadFull(conn, frame)
				}
				if err != nil {
					failed <- err
					return
				}
				first.Do(answered.Done)
			}
		}()
	}
	answered.Wait()
	fmt.Println("answered")
	return <-failed
}

// serve answers the connections whose frames have come in turns, of which as many follow one another as a client waits for.
func (f *Floor) serve() error {
	listener, err := net.Listen("tcp", f.Address)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	turns := int(f.Every / f.Tick)
	var mu sync.Mutex
	waiting := make([][]net.Conn, turns)
	go func() {
		var answer [frameSize]byte
		for turn := 0; ; turn = (turn + 1) % turns {
			mu.Lock()
			due := waiting[turn]
			waiting[turn] = nil
			mu.Unlock()
			for _, conn := range due {
				_, _ = conn.Write(answer[:]) // who has gone is not waited for
			}
			time.Sleep(f.Tick)
		}
	}()
	for n := 0; ; n++ {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		turn := n % turns
		go func() {
			var frame [frameSize]byte
			for {
				if _, err := io.ReadFull(conn, frame[:]); err != nil {
					return
				}
				mu.Lock()
				waiting[turn] = append(waiting[turn], conn)
				mu.Unlock()
			}
		}()
	}
}
