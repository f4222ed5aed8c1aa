package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// sideVariable in the environment makes this program one side of a pair: it says what the life is like.
const sideVariable = "DGRDMA_CRASH_SIDE"

// orders are what a life of a side is like.
type orders struct {
	Side, Life int
	URL        string
	Seed       uint64
	GiveUp     time.Duration
	Key        *dgrdma.Key
	Load       string
	Manner     manner
	Variant    string // what is wrong with it, see variants
}

// manner is what the program does with connections.
type manner struct {
	Accepts bool // it waits for the peer, and does not dial
	Renews  bool // it closes a connection that failed, and makes another; else it resets it where that is needed
	Waits   bool // who accepts waits until the peer comes back, and does not reset
	Looks   bool // its memory looks at data as it is placed
	Traces  bool // it looks at frames
}

func idOf(side int) dgrdma.EndpointID { return dgrdma.EndpointID(1 + side) }

// side is the process.
type side struct {
	orders
	region  *dgrdma.Region
	journal *journal
	board   board
	ep      *dgrdma.Endpoint
	memory  dgrdma.Memory
	armed   atomic.Uint32 // the trigger that was seen last
	left    atomic.Int64  // how often its moment comes before it fires

	// What variants change.
	report  func(record)
	repeats bool // it posts again what failed
}

// variants are ways to be wrong, for the tests of whether that is told.
var variants = map[string]func(*side){}

// runSide is main of a side. It ends by a signal.
func runSide(text string) error {
	s := &side{}
	if err := json.Unmarshal([]byte(text), &s.orders); err != nil {
		return err
	}
	var mem [3]*shared
	for i, size := range []int{memorySize, journalSize, boardSize} {
		var err error
		if mem[i], err = mapShared(os.NewFile(uintptr(3+i), "shared"), size); err != nil {
			return err
		}
	}
	var err error
	if s.region, err = dgrdma.RegionOver(mem[0].mem); err != nil {
		return err
	}
	if s.journal, err = newJournal(mem[1].mem); err != nil {
		return err
	}
	if s.board, err = newBoard(mem[2].mem); err != nil {
		return err
	}
	s.report = s.journal.write
	s.memory = newMemory(s)
	if change := variants[s.Variant]; change != nil {
		change(s)
	}
	if s.Load == links {
		return s.runLinks()
	}
	return s.runTransactions()
}

func (s *side) config() dgrdma.Config {
	cfg := dgrdma.Config{ID: idOf(s.Side), GiveUp: s.GiveUp, AcceptAny: true}
	if s.Key != nil {
		cfg.Keys = &dgrdma.Keys{All: s.Key}
	}
	cfg.OnEvent = func(e dgrdma.Event) {
		if e.Kind == dgrdma.PeerUp || e.Kind == dgrdma.PeerRestarted {
			s.reached(peerUp)
		}
	}
	if s.Manner.Traces {
		cfg.Trace = &dgrdma.Trace{
			FrameSent:     func(dgrdma.PeerName, []byte, bool) { s.reached(frameSent) },
			FrameReceived: func(dgrdma.PeerName, []byte, dgrdma.Reason) { s.reached(frameCame) },
		}
	}
	return cfg
}

func (s *side) runTransactions() (err error) {
	cfg := s.config()
	cfg.Memory = s.memory
	if s.ep, err = dgrdma.Open(s.URL, &cfg); err != nil {
		return err
	}
	s.ready(s.ep.URL())
	return newPoster(s).run()
}

// ready tells that the life has begun.
func (s *side) ready(url string) {
	s.board.setURL(s.Side, url)
	s.report(record{kind: isReady})
	s.reached(opened)
}

// peerURL returns where the peer is, when that is known.
func (s *side) peerURL() string {
	for {
		if url := s.board.url(1 - s.Side); url != "" {
			return url
		}
		time.Sleep(time.Millisecond)
	}
}

// reached is called in each moment that may be a life's last.
func (s *side) reached(m moment) {
	word := s.board.armed(s.Side)
	t := triggerOf(word)
	if t.Moment != m {
		return
	}
	if s.armed.Swap(word) != word {
		s.left.Store(int64(t.Count))
	}
	if s.left.Add(-1) != 0 {
		return
	}
	if t.Peer {
		s.killPeer()
	}
	if t.Own {
		unix.Kill(os.Getpid(), unix.SIGKILL)
		select {} // until it has come
	}
}

// killPeer kills the peer's process and no other: one that is on the board behind the call that finds it was not
// waited for, and has its number still.
func (s *side) killPeer() {
	pid := s.board.pid(1 - s.Side)
	if pid == 0 {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if s.board.pid(1-s.Side) == pid {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// says reports whether an error says in a way that a program can test what became of a connection.
func says(err error) bool {
	for _, is := range []error{dgrdma.ErrPeerDown, dgrdma.ErrPeerRestarted, dgrdma.ErrReset, dgrdma.ErrClosed} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// wrong tells what should not have happened.
func (s *side) wrong(f fault, of name, what any) {
	s.report(record{kind: isWrong, code: f, life: of.life, number: of.number})
	fmt.Fprintf(os.Stderr, "side %d, life %d: %v: %v: %v\n", s.Side, s.Life, f, of, what)
}
