package main

// moment is one in which a process kills itself, or its peer.
type moment int

const (
	never     moment = iota
	opened           // the endpoint is open
	frameSent        // a frame leaves: an introduction, or later
	frameCame
	peerUp     // the peer is met, or a new life of it
	placed     // some bytes of a transaction are in memory
	beforeWord // all of them are, and its completion word is not
	behindWord // the word is, and nothing was acknowledged yet
	beforeDone // a transaction was acknowledged, and its program does not know
	behindDone // it was reported done just now
	received   // a message of a link is in the program's hands
	flushed    // messages of a link were reported to have arrived
	mostMoment
)

// trigger is when a life ends by itself, or the peer's by it: when a moment comes for the count-th time.
type trigger struct {
	Moment    moment
	Count     int
	Own, Peer bool
}

// word returns the trigger as the board has it. One that is armed again has another number.
func (t trigger) word(number int) uint32 {
	w := uint32(number)<<24 | uint32(t.Moment)<<16 | uint32(t.Count)<<2
	if t.Own {
		w |= 1
	}
	if t.Peer {
		w |= 2
	}
	return w
}

func triggerOf(w uint32) trigger {
	return trigger{moment(w >> 16 & 0xff), int(w >> 2 & 0x3fff), w&1 != 0, w&2 != 0}
}

// fault is what should not have happened.
type fault uint8

const (
	_           fault = iota
	wordTooSoon       // a completion word without its data
	wordTwice
	lifeOver    // something of a life behind something of a later one
	wrongPlace  // bytes where they do not belong
	wrongLife   // what was posted to one life of the peer is in another one
	notPosted   // something is there that nobody posted
	doneTooSoon // something was reported done, and is not there
	saysNothing // an error by which a program cannot tell what happened
	badMessage  // of a link: not the next one, or not whole
	notReceived // of a link: reported to have arrived, and not received
	noProgress  // the pair does not work again
	ended       // a process ended by itself
)

var faultNames = [...]string{
	wordTooSoon: "a completion word without its data", wordTwice: "it completed twice", lifeOver: "of a life that is over",
	wrongPlace: "bytes where they do not belong", wrongLife: "it was meant for another life", notPosted: "nobody posted it",
	doneTooSoon: "it was reported done and is not there", saysNothing: "an error that says nothing", badMessage: "not the message that is next",
	notReceived: "messages that arrived were not received", noProgress: "the pair does not work again", ended: "a process ended by itself",
}

func (f fault) String() string { return faultNames[f] }
