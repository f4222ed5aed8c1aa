package rpcrdma

// Action is something to be done.
type Action struct {
	Kind ActionKind

	N    int       // of ActReceive: how many
	Call *Call     // of ActReturn
	In   *Incoming // of ActPlace and ActDeliver
	Done func()    // of ActAnswered; may be nil
	Err  error     // of ActClose: why

	// Of ActPost.
	Op     Op
	Serial uint64  // of the work, for [Machine.Completed]
	Data   []byte  // what is sent or written, or where what is read goes. It stays the same until the work is complete
	To     Segment // of a Write; of a Read, from where
	// Invalidate is the handle that a Send withdraws at the peer. 0 is none.
	Invalidate uint32
	// Signaled says that the completion of the work must be told. For others it suffices to tell that of a later one.
	Signaled bool
}

// ActionKind is what is to be done.
type ActionKind uint8

// Kinds of actions.
const (
	ActPost     ActionKind = iota // post a work
	ActReceive                    // post N more receives of Config.ReceiveSize, before the works that follow
	ActPlace                      // the head of In is there: say where its items go, by Place, Reply or Fail
	ActDeliver                    // In is complete: carry it out, then Reply or Fail
	ActReturn                     // Call is done, and all that the program gave to it is the program's again (but see Call.Kept)
	ActAnswered                   // nothing of an answer's items is in use any more: call Done, outside of all locks
	ActClose                      // end the connection, when what is posted has gone or a second has passed
)

// Op is an operation of a send queue.
type Op uint8

// Operations.
const (
	OpSend Op = iota
	OpWrite
	OpRead
)

// actions are those that need no room in the send queue, in order.
type actions struct {
	list  []Action
	first int
}

func (q *actions) add(a Action) { q.list = append(q.list, a) }

func (q *actions) take(a *Action) bool {
	if q.first == len(q.list) {
		return false
	}
	*a = q.list[q.first]
	q.list[q.first] = Action{}
	if q.first++; q.first == len(q.list) {
		q.list, q.first = q.list[:0], 0
	}
	return true
}

// work is what a posted work holds until it is complete.
type work struct {
	slot *Buffer   // what is sent
	in   *Incoming // whose Write or Read it is
	read bool
}

// works are those that are posted, in order. Serials are consecutive.
type works struct {
	ring       []work // its length is a power of two
	done, next uint64 // serials: of the first that is not complete, and of the next
	silent     int    // in a row that are not signaled
}

func (q *works) add(w work) (serial uint64) {
	if q.next-q.done == uint64(len(q.ring)) {
		ring := make([]work, max(2*len(q.ring), 16))
		for s := q.done; s < q.next; s++ {
			ring[s&uint64(len(ring)-1)] = q.ring[s&uint64(len(q.ring)-1)]
		}
		q.ring = ring
	}
	serial = q.next
	q.ring[serial&uint64(len(q.ring)-1)] = w
	q.next++
	return serial
}

func (q *works) take() work {
	at := q.done & uint64(len(q.ring)-1)
	w := q.ring[at]
	q.ring[at] = work{}
	q.done++
	return w
}

// post fills in the action of a work. Room is that of the send queue. Told says that somebody waits for the completion of
// this very work. Others are signaled as often as the queue and slots need: the last one for which there is room, and
// each Sends/4th.
func (m *Machine) post(a *Action, room int, op Op, data []byte, told bool, w work) {
	a.Kind, a.Op, a.Data = ActPost, op, data
	a.Serial = m.works.add(w)
	m.works.silent++
	if told || room == 1 || m.works.silent >= m.cfg.Sends/4 {
		a.Signaled = true
		m.works.silent = 0
	}
}

// Next says what is to be done next, until there is nothing, or nothing for which there is room in the send
// queue. An action that it gave must be carried out.
func (m *Machine) Next(room int, a *Action) bool {
	*a = Action{}
	if m.phase == Closed {
		return m.actions.take(a)
	}
	if n := m.wanted() - m.posted; n > 0 {
		a.Kind, a.N = ActReceive, n
		m.posted += n
		return true
	}
	if m.actions.take(a) {
		return true
	}
	if room > 0 && (m.rsp.nextRead(m, room, a) || m.nextMessage(room, a)) {
		return true
	}
	return m.actions.take(a) // of a Call that could not be sent
}

// wanted returns how many receives must be there.
func (m *Machine) wanted() int {
	if m.credits == nil {
		return m.cfg.Posted()
	}
	return m.credits.receives()
}
