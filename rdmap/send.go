package rdmap

import "github.com/dgrdma/dgrdma/rdmap/ddp"

// Next is what a carrier asks for, see [ddp.Source].
func (s *Stream) Next(m *ddp.Message) bool {
	if s.state == open && s.next(m) {
		return true
	}
	if s.state != terminating { // a request can turn out to be at fault when it is carried out
		return false
	}
	s.composeTerminate(m)
	return true
}

func (s *Stream) next(m *ddp.Message) bool {
	switch {
	case !s.cfg.Initiator && !s.heard:
		return false // MPA-011: the responder waits for the first message
	case !s.spoke:
		s.spoke = true
		s.composeReady(m)
		return true
	}
	// A flood of Reads must not keep this side's own requests from the wire, nor the other
	// way round.
	if s.ours && s.request(m) {
		s.ours = false
		return true
	}
	if s.respond(m) {
		s.ours = true
		return true
	}
	return s.state == open && !s.ours && s.request(m)
}

// Sent is what a carrier says, see [ddp.Source].
func (s *Stream) Sent(n int) {
	for ; n > 0; n-- {
		g := *s.given.at(s.given.head)
		s.given.head++
		switch {
		case s.state == ended:
		case g.kind == givenWork:
			s.workSent(g.place)
		case g.kind == givenResponse:
			s.stats.Answered++
			s.stats.Served[s.responder.oldest()]++
			s.stats.FetchedBytes += uint64(s.responder.sent())
		}
	}
	if s.state == open {
		s.complete()
	}
}

func (s *Stream) composeTerminate(m *ddp.Message) {
	s.state = terminated // RDMAP-056: nothing follows it
	m.Header = Terminate.head()
	m.MSN = 1
	m.Data = nil
	m.InlineSize = copy(m.Inline[:], s.terminate[:s.termLen])
	m.Length = uint32(m.InlineSize)
	*s.given.add() = given{kind: givenOther}
}

// composeReady is the message that opens a stream of the peer-to-peer model. What it names is
// nobody's memory, and siw sends the same (MPA-016).
func (s *Stream) composeReady(m *ddp.Message) {
	m.Data, m.InlineSize, m.Length = nil, 0, 0
	r := &s.requester
	switch s.cfg.Ready {
	case ReadyRead:
		m.Header = ReadRequest.head()
		r.requests++
		m.MSN = r.requests
		q := ReadHeader{SourceSTag: 1}
		m.InlineSize = q.put(m.Inline[:])
		m.Length = readSize
		*r.waiting.add() = placeReady
		r.alone = true
	case ReadySend:
		m.Header = Send.head()
		r.sends++
		m.MSN = r.sends
	default:
		m.Header = Write.head()
		m.STag = 1
	}
	*s.given.add() = given{kind: givenOther}
}
