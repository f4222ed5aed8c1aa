package session

// mostReplies bounds the replies that wait to leave: the peer asks again for others.
const mostReplies = 4

// Reply is a frame of the handshake that is to leave.
type Reply struct {
	Frame
	Brief  bool // what it answers has no list of services
	Checks bool // and had a checksum
}

// Replies are the frames of the handshake that wait to leave: the newest one of each kind. The zero value has none.
type Replies struct {
	list [mostReplies]Reply
	n    int
}

// Add adds a reply, in place of one of its kind. Where there is no room it is left out.
func (r *Replies) Add(x Reply) {
	for i := range r.list[:r.n] {
		if r.list[i].Kind == x.Kind {
			r.list[i] = x
			return
		}
	}
	if r.n < mostReplies {
		r.list[r.n] = x
		r.n++
	}
}

// Len returns how many there are.
func (r *Replies) Len() int { return r.n }

// Take takes out the one that was added last. There is one.
func (r *Replies) Take() Reply {
	r.n--
	return r.list[r.n]
}

// Clear forgets all.
func (r *Replies) Clear() { r.n = 0 }
