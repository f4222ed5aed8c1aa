package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dgrdma/dgrdma/verbs"
)

// A client says greeting when it connects. The server answers with the key of its table, and the number of slots that
// hashes name, 4 bytes. Clients ask by a message each for
//
//	0  1  what: opPut or opDelete
//	1  1  length of the key
//	2     key, value
//
// and wait for the answer before they ask again: 8 bytes of immediate data, of which the first is the status.
const greeting = "kv 1"

const (
	opPut = iota + 1
	opDelete
)

const maxRequest = 2 + maxBoth

// mostClients is how many are connected at once: any program that reaches the port could take all memory otherwise. Arbitrary.
const mostClients = 256

// Status of a request.
const (
	statusDone = iota
	statusFull
	statusNotThere
	statusMalformed
)

// server answers all clients from one goroutine, which is all that changes the table.
type server struct {
	table    *table
	region   *verbs.Region
	received *verbs.CompletionQueue
	log      io.Writer

	mu    sync.Mutex
	last  uint64            // client
	inbox map[uint64][]byte // of each client
}

// serve serves until ctx ends.
func serve(ctx context.Context, at, port string, slots int, out io.Writer) error {
	if slots < 1 || slots > 1<<22 {
		return fmt.Errorf("a table of %d entries: it has 1 to %d", slots, 1<<22)
	}
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	s := &server{table: newTable(slots), received: verbs.NewCompletionQueue(), log: out, inbox: make(map[uint64][]byte)}
	if s.region, err = host.Register(s.table.bytes, verbs.RemoteRead); err != nil {
		return err
	}
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "serving on", l)
	go s.accept(ctx, l)
	return s.answer(ctx)
}

// accept takes whoever speaks our language. A client may ask for one thing at a time: each has one receive of its
// own, so that one which sends more ends its own connection only.
func (s *server) accept(ctx context.Context, l *verbs.Listener) {
	private := binary.BigEndian.AppendUint32(s.region.Key().Bytes(), uint32(s.table.slots))
	for {
		request, err := l.Accept(ctx)
		if err != nil {
			return
		}
		go func() { // one that does not answer holds up nobody else
			if string(request.Private) != greeting {
				request.TurnAway([]byte("this is a key-value store: say " + greeting))
				return
			}
			id, inbox, ok := s.enter()
			if !ok {
				request.TurnAway(fmt.Appendf(nil, "%d clients are there already: try again later", mostClients))
				return
			}
			_, err := request.Accept(ctx, &verbs.Options{
				Private: private, Extensions: verbs.Immediates, Received: s.received, Sends: 2, Receives: 1,
				Posted: []verbs.Receive{{ID: id, Data: inbox}},
			})
			if err != nil {
				s.leave(id)
				fmt.Fprintln(s.log, err)
			}
		}()
	}
}

// enter makes a place for the requests of a client, if one is left.
func (s *server) enter() (id uint64, inbox []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.inbox) == mostClients {
		return 0, nil, false
	}
	s.last++
	s.inbox[s.last] = make([]byte, maxRequest)
	return s.last, s.inbox[s.last], true
}

func (s *server) leave(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inbox, id)
}

// answer carries out what clients ask for, one after the other.
func (s *server) answer(ctx context.Context) error {
	done := make([]verbs.Completion, 64)
	for {
		n, err := s.received.Wait(ctx, done)
		if err != nil {
			return err
		}
		for i := range done[:n] {
			c := &done[i]
			if c.Err != nil { // the client is gone, and its receive with it
				s.leave(c.ID)
				continue
			}
			s.mu.Lock()
			inbox := s.inbox[c.ID]
			s.mu.Unlock()
			status := s.do(inbox[:c.Length])
			// The receive is there before the client has the answer, and may ask anew.
			qp := c.QueuePair()
			if qp.PostReceive(verbs.Receive{ID: c.ID, Data: inbox}) != nil {
				s.leave(c.ID)
				continue
			}
			answer := verbs.Work{Op: verbs.OpImmediate, Silent: true, Payload: [8]byte{status}}
			if err := qp.Post(&answer); err != nil {
				fmt.Fprintln(s.log, err)
				go qp.Abort() // it does not read its answers; the receive will say that it is gone
			}
		}
	}
}

// do carries out a request.
func (s *server) do(request []byte) (status byte) {
	if len(request) < 2 || len(request) < 2+int(request[1]) {
		return statusMalformed
	}
	key, value := string(request[2:][:request[1]]), request[2+int(request[1]):]
	var err error
	switch request[0] {
	case opPut:
		err = s.table.put(key, value)
	case opDelete:
		err = s.table.remove(key)
	default:
		return statusMalformed
	}
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, errFull):
		return statusFull
	case errors.Is(err, errNotThere):
		return statusNotThere
	}
	return statusMalformed
}
