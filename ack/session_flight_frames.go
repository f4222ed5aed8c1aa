package ack

// frameList is a list of frames in the order in which they entered it.
type frameList struct {
	head, tail uint32
	n          int
}

func (f *Flight) frame(id uint32) *flightFrame {
	if len(f.frames) == 0 {
		return &flightFrame{}
	}
	return &f.frames[int(id)&(len(f.frames)-1)]
}

// Capacity returns the number of places for frames: an owner may keep things by id modulo it, as long as it follows its growth.
func (f *Flight) Capacity() int { return len(f.frames) }

// Shrink gives the memory for frames back. Nothing may be in flight.
func (f *Flight) Shrink() { f.frames, f.answered = nil, nil }

// grow is called for each id that finds no place, so that one step is enough.
func (f *Flight) grow() {
	old := f.frames
	f.frames = make([]flightFrame, max(16, 2*len(old)))
	for id := f.oldest; id != f.next && len(old) > 0; id++ {
		*f.frame(id) = old[int(id)&(len(old)-1)]
	}
}

func (f *Flight) push(l *frameList, id uint32) {
	if l.n == 0 {
		l.head = id
	} else {
		f.frame(l.tail).next = id
		f.frame(id).prev = l.tail
	}
	l.tail = id
	l.n++
}

func (f *Flight) remove(l *frameList, id uint32) {
	s := f.frame(id)
	if id == l.head {
		l.head = s.next
	} else {
		f.frame(s.prev).next = s.next
	}
	if id == l.tail {
		l.tail = s.prev
	} else {
		f.frame(s.next).prev = s.prev
	}
	l.n--
}
