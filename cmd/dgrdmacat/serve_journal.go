package main

import (
	"errors"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

const (
	// journalRoom bounds what waits to be printed, and refusedKinds of how many
	// peers and reasons refusals are told apart. Both arbitrary.
	journalRoom  = 4096
	refusedKinds = 1024
	// refusedEvery is how often refusals of one kind are printed, at most.
	refusedEvery = time.Second
	// settlesWithin is how long refusals wait to be printed that end when a peer finds out that this side
	// began anew: it asks again after a second, and once more for the end of its old life.
	settlesWithin = 3 * time.Second
)

// settles reports whether frames are refused for that reason that a peer sends to this side as it was before it began anew.
func settles(why dgrdma.Reason) bool {
	return why == dgrdma.RefusedSeal || why == dgrdma.RefusedNoSession
}

// journal is what happened and was not printed yet. It is written on the
// goroutine that receives, which never waits for who prints: if that one is slow,
// values in between are left out, and so are events, which are counted.
type journal struct {
	wake chan struct{} // one token: there is something

	mu      sync.Mutex
	entries []entry
	late    []entry    // changes of words that found no room, the last of each
	lines   lineBudget // of events, which anyone may cause, and not of words that are watched
	refused map[refusal]*refusals
}

// entry is something that happened. Events are named by kind, changes of words
// have none.
type entry struct {
	at      time.Time
	kind    string
	peer    dgrdma.PeerName
	reason  string
	err     error
	times   uint64       // refusals, or events that were lost
	size    int          // of frames that became shorter
	readmit *dgrdma.Conn // of a peer that seems to have restarted
	addr    uint32
	value   uint32
	skipped uint64       // values between the one before and this one
	word    *watchedWord // of late changes
}

type refusal struct {
	peer   dgrdma.PeerName
	reason dgrdma.Reason
}

type refusals struct {
	after time.Time // when they are printed, at the earliest
	more  uint64    // not printed
	err   error
}

func newJournal() *journal {
	return &journal{wake: make(chan struct{}, 1), refused: make(map[refusal]*refusals)}
}

func (j *journal) token() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// changed notes the new value of a word.
func (j *journal) changed(peer dgrdma.PeerName, addr uint32, word *watchedWord) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := entry{at: time.Now(), peer: peer, addr: addr, value: word.value, word: word}
	switch {
	case word.late > 0:
		before := &j.late[word.late-1]
		e.skipped = before.skipped + 1
		*before = e
	case len(j.entries) < journalRoom:
		j.entries = append(j.entries, e)
	default:
		j.late = append(j.late, e)
		word.late = len(j.late)
	}
	j.token()
}

// event is the endpoint's OnEvent.
func (j *journal) event(ev dgrdma.Event) {
	e := entry{at: time.Now(), peer: ev.Peer, err: ev.Err}
	switch ev.Kind {
	case dgrdma.PeerUp:
		e.kind = "up"
	case dgrdma.PeerDown:
		if e.kind = "down"; errors.Is(ev.Err, dgrdma.ErrPeerClosed) {
			e.kind, e.err = "closed", nil
		}
	case dgrdma.PeerRestarted:
		if e.kind = "restarted"; ev.Reason != 0 {
			e.kind, e.readmit = "seems restarted", ev.Conn
		}
	case dgrdma.TransactionLost:
		e.kind = "lost"
	case dgrdma.FramesMissed:
		e.kind, e.times = "missed", uint64(ev.Frames)
	case dgrdma.FramesShortened:
		e.kind, e.size = "shortened", ev.Size
	case dgrdma.FrameRefused:
		if errors.Is(ev.Err, errOver) {
			return
		}
		e.kind, e.reason, e.times = "refused", ev.Reason.String(), 1
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if ev.Kind == dgrdma.PeerUp {
		delete(j.refused, refusal{ev.Peer, dgrdma.RefusedSeal})
		delete(j.refused, refusal{ev.Peer, dgrdma.RefusedNoSession})
	}
	if ev.Kind == dgrdma.FrameRefused && !j.first(refusal{ev.Peer, ev.Reason}, &e) {
		return
	}
	j.add(e)
}

// add appends an event. Guarded by mu.
func (j *journal) add(e entry) {
	switch {
	case !j.lines.spend(e.at): // which counts it
	case len(j.entries) < journalRoom:
		j.entries = append(j.entries, e)
	default:
		j.lines.out++
	}
	j.token()
}

// first reports whether a refusal is to be printed at once, and not with those
// that follow. Guarded by mu.
func (j *journal) first(k refusal, e *entry) bool {
	r := j.refused[k]
	switch {
	case r == nil && len(j.refused) == refusedKinds:
		j.lines.out++
		return false
	case r == nil && settles(k.reason):
		r = &refusals{after: e.at.Add(settlesWithin)}
		j.refused[k] = r
	case r == nil:
		j.refused[k] = &refusals{after: e.at.Add(refusedEvery)}
		return true
	}
	r.more++
	r.err = e.err
	return false
}

// take returns what there is to print, in the order of time but for changes that
// were late.
func (j *journal) take() []entry { return j.taken(false) }

// taken is take, at the end or before it.
func (j *journal) taken(end bool) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := append(j.entries, j.late...)
	for i := range j.late {
		j.late[i].word.late = 0
	}
	now := time.Now()
	for k, r := range j.refused {
		if now.Before(r.after) && !end {
			continue
		}
		if r.more == 0 {
			delete(j.refused, k)
			continue
		}
		if !j.lines.spend(now) {
			j.lines.out-- // it stays where it is counted
			if end {
				j.lines.out += r.more
			}
			continue
		}
		list = append(list, entry{at: now, kind: "refused", peer: k.peer, reason: k.reason.String(), times: r.more, err: r.err})
		r.after, r.more = now.Add(refusedEvery), 0
	}
	if n := j.lines.leftOut(now, end); n > 0 {
		list = append(list, entry{at: now, kind: "not shown", times: n})
	}
	j.entries, j.late = nil, nil
	return list
}

// rest is take at the end: nothing waits for its second to be over.
func (j *journal) rest() []entry { return j.taken(true) }
