package round

import (
	"os"
	"sync"
)

// mostRecent is how many bytes of a capture are kept for a node, in each of two halves.
const mostRecent = 2 << 20

// recent keeps the end of a capture: the header of the file, and the last records.
type recent struct {
	mu          sync.Mutex
	header      []byte
	older, last []byte
	frozen      bool // nothing is forgotten any more
}

// Write implements io.Writer. Each call brings whole records, the first the header.
func (r *recent) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.header == nil:
		r.header = append(r.header, b...)
		return len(b), nil
	case len(b) == len(r.header):
		return len(b), nil // another life's; no record is as short
	case len(r.last)+len(b) > mostRecent && r.frozen:
		return len(b), nil
	case len(r.last)+len(b) > mostRecent:
		r.older, r.last = r.last, r.older[:0]
	}
	r.last = append(r.last, b...)
	return len(b), nil
}

// freeze keeps what there is, and what comes until the half is full: something was wrong just now.
func (r *recent) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}

// save writes the capture to a file.
func (r *recent) save(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(append(append([]byte(nil), r.header...), r.older...), r.last...)
	return os.WriteFile(name, all, 0o666)
}
