package verbs

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/dgrdma/dgrdma/internal/strangers"
)

// lobby is where connections are that have not sent a whole request. There are so many places; a newcomer who
// finds none gets that of the one who has been there longest. So connections that say nothing cannot
// keep others out: a peer's request is there within a round trip, and it would take as many
// newcomers as there are places within that time.
type lobby struct {
	places chan struct{}
	bounds *bounds

	mu     sync.Mutex
	guests list.List // of *guest, the longest there first
}

// lobbyPlaces bounds the goroutines and descriptors that cost nothing but a handshake of TCP.
const lobbyPlaces = 1024

// perStranger is what each of those takes at most who have proven nothing: in the lobby, behind a request
// that nobody has accepted, or turned away. Most is the stack of a goroutine.
const perStranger = 8 << 10

const _ = uint(strangers.Memory - (lobbyPlaces+Backlog+2*MostTurnedAway)*perStranger)

// guest is a connection in the lobby.
type guest struct {
	ctx   context.Context
	leave context.CancelCauseFunc
	at    *list.Element // nil: shown out
}

var errCrowded = errors.New("too many connections that send no request")

func newLobby(b *bounds) *lobby {
	return &lobby{places: make(chan struct{}, lobbyPlaces), bounds: b}
}

// enter waits for a place, which is free as soon as somebody has been shown out.
func (l *lobby) enter(ctx context.Context) *guest {
	select {
	case l.places <- struct{}{}:
	default:
		l.showOut()
		l.places <- struct{}{}
	}
	g := new(guest)
	g.ctx, g.leave = context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	g.at = l.guests.PushBack(g)
	return g
}

// showOut has the oldest guest leave.
func (l *lobby) showOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.guests.Front(); e != nil {
		g := l.guests.Remove(e).(*guest)
		g.at = nil
		l.bounds.crowded.Add(1)
		g.leave(errCrowded)
	}
}

// leave gives a place back.
func (l *lobby) leave(g *guest) {
	l.mu.Lock()
	if g.at != nil {
		l.guests.Remove(g.at)
		g.at = nil
	}
	l.mu.Unlock()
	g.leave(nil)
	<-l.places
}
