package load

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Floor measures the least cost of a crowd's leases: a server whose clients exchange frames of the size of a
// renewal, in groups, at a given rate. It does nothing else.
type Floor struct {
	Address string
	Clients int           // 0: this process is the server
	Every   time.Duration // interval between answers to a client
	Tick    time.Duration // interval between two groups of clients
}

const (
	floorWord = "crowd-floor"
	frameSize = 50 // bytes of a renewal and its reply
)

// Args returns the arguments for a process with this floor.
func (f *Floor) Args() []string {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err) // it can always be encoded
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

// serve answers connections in turns; a client waits for a fixed number of turns.
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
				_, _ = conn.Write(answer[:]) // errors of closed connections do not matter
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
