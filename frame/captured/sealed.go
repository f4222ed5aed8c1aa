package captured

import (
	"bytes"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// Seal returns whether the packet is a sealed frame, or of a handshake, as far as it was captured. Of these only
// ids and flags of the Header mean anything.
func (p *Packet) Seal() datagram.Kind {
	if len(p.Data) <= datagram.FlagsAt {
		return datagram.Plain
	}
	if k := datagram.KindBy(p.Data[datagram.FlagsAt]); k.Fits(p.Length) {
		return k
	}
	return datagram.Plain
}

// fewSealed is below what the counters of frames stay between whom one has no id: they ask, for
// some seconds, who is there, or answer that. More would make other protocols look like them.
const fewSealed = 1 << 16

// plausibleSeal tells what is sealed, and handshakes, from other datagrams by what senders never do.
func plausibleSeal(b []byte, k datagram.Kind, h *frame.Header) bool {
	n := datagram.Counter(b)
	switch k {
	case datagram.Question, datagram.First:
		return n == 0 && h.Src != 0
	case datagram.Challenge, datagram.Second:
		return n == 0 && h.Dst != 0
	}
	return h.Src != 0 && h.Dst != 0 || (h.Src != 0 || h.Dst != 0) && n < fewSealed
}

// A sealed frame does not say where it ends. But all of a batch have the same salt, and all of a conversation the
// same prefix and ids, neither of which is in what is encrypted but by an improbable chance. Datagrams of a
// handshake have a length of their own.

// splitSeal is split where the first datagram is sealed or of a handshake. Not ok: it is not.
func (j *joined) splitSeal(first *Packet) (size int, ok bool) {
	if len(first.Data) <= datagram.FlagsAt {
		return 0, false
	}
	switch k := datagram.KindBy(first.Data[datagram.FlagsAt]); {
	case k == datagram.Plain:
		return 0, false
	case k.IsHandshake():
		j.size = frame.PrefixSize + k.Size()
	default:
		j.size = j.nextSealed(datagram.FlagsAt+1, datagram.SaltSize)
		if j.size == 0 {
			j.size = j.nextSealed(-frame.PrefixSize, frame.PrefixSize+datagram.IDsSize)
		}
	}
	if j.size == 0 || j.size >= j.length || !j.fits() {
		j.size = j.length
	}
	return j.size, true
}

// nextSealed returns where the datagram behind the first one begins, by n bytes that both have at some place of the frame; 0: there
// is none.
func (j *joined) nextSealed(at, n int) int {
	const least = frame.PrefixSize + datagram.LeastPayload
	at += frame.PrefixSize
	if len(j.data) < at+n {
		return 0
	}
	same := j.data[at : at+n]
	for from := least + at; from < len(j.data); {
		i := bytes.Index(j.data[from:], same)
		if i < 0 {
			return 0
		}
		if size := from + i - at; j.continues(size) {
			return size
		}
		from += i + 1
	}
	return 0
}

// continues reports whether what begins there may be the second datagram behind a sealed one.
func (j *joined) continues(size int) bool {
	if len(j.data)-size < leastDatagram {
		return false
	}
	j.size = size
	p := j.at(size)
	if p.Seal() == datagram.Plain || !plausible(&p) {
		return false
	}
	first := j.at(0)
	one, _ := first.Header()
	h, _ := p.Header()
	return h.Src == one.Src || h.Dst == one.Dst
}
