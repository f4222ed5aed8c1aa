package opencpi

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A descriptor is encoded as OpenCPI's software does it: a byte for the byte order, then the
// fields, each at a multiple of its size.
const (
	bigEndianMark    = 0
	littleEndianMark = 1

	filler = 'x'

	maxEndpointLength = 255
)

// endpointMisfit returns what the field endpoint would have to be instead, or "".
func endpointMisfit(endpoint string) string {
	switch {
	case len(endpoint) > maxEndpointLength:
		return fmt.Sprintf("at most %d bytes, not %d", maxEndpointLength, len(endpoint))
	case strings.IndexByte(endpoint, 0) >= 0:
		return "no NUL in it"
	}
	return ""
}

// AppendBinary appends d to dst in little-endian byte order. It writes what d
// holds, valid or not, and fails only if the endpoint has more than 255 bytes
// or a NUL. The error is ErrDescriptor.
func (d Descriptor) AppendBinary(dst []byte) ([]byte, error) {
	if reason := endpointMisfit(d.Endpoint); reason != "" {
		return dst, badDescriptor("endpoint is %.80q, expected %s", d.Endpoint, reason)
	}
	w := cdrWriter{buf: append(dst, littleEndianMark), start: len(dst)}
	for _, f := range d.fields() {
		switch v := f.value.(type) {
		case *Kind:
			w.uint32(uint32(*v))
		case *Role:
			w.uint32(uint32(*v))
		case *uint32:
			w.uint32(*v)
		case *uint64:
			w.uint64(*v)
		case *string:
			w.string(*v)
		}
	}
	return w.buf, nil
}

// ParseDescriptor reads a descriptor in either byte order. All of b must belong
// to it. It leaves open whether the values make sense; see
// [Descriptor.Validate]. An error is ErrDescriptor and says which field is
// wrong, and at which offset in b.
func ParseDescriptor(b []byte) (Descriptor, error) {
	r := cdrReader{data: b}
	if err := r.byteOrder(); err != nil {
		return Descriptor{}, badDescriptor("byte order %w", err)
	}
	var d Descriptor
	for _, f := range d.fields() {
		var err error
		switch v := f.value.(type) {
		case *Kind:
			err = r.uint32((*uint32)(v))
		case *Role:
			err = r.uint32((*uint32)(v))
		case *uint32:
			err = r.uint32(v)
		case *uint64:
			err = r.uint64(v)
		case *string:
			err = r.string(v, maxEndpointLength)
		}
		if err != nil {
			return Descriptor{}, badDescriptor("%s %w", f.name, err)
		}
	}
	if r.at != len(b) {
		return Descriptor{}, badDescriptor("end at offset %d: expected nothing more, found %d bytes", r.at, len(b)-r.at)
	}
	return d, nil
}

// cdrWriter writes values in little-endian byte order. Alignment counts from
// start.
type cdrWriter struct {
	buf   []byte
	start int
}

func (w *cdrWriter) align(size int) {
	for (len(w.buf)-w.start)%size != 0 {
		w.buf = append(w.buf, filler)
	}
}

func (w *cdrWriter) uint32(v uint32) {
	w.align(4)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, v)
}

func (w *cdrWriter) uint64(v uint64) {
	w.align(8)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, v)
}

func (w *cdrWriter) string(s string) {
	w.uint32(uint32(len(s)) + 1)
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, 0)
}

// cdrReader reads values from data. It skips filler unread, as peers do not say
// what they put there.
type cdrReader struct {
	data  []byte
	at    int
	order binary.ByteOrder
}

// take returns the next size bytes at a multiple of alignment.
func (r *cdrReader) take(size, alignment int) ([]byte, error) {
	at := r.at + -r.at&(alignment-1)
	if left := max(len(r.data)-at, 0); left < size {
		return nil, fmt.Errorf("at offset %d: expected %d bytes, found %d", at, size, left)
	}
	r.at = at + size
	return r.data[at:r.at], nil
}

func (r *cdrReader) byteOrder() error {
	mark, err := r.take(1, 1)
	if err != nil {
		return err
	}
	switch mark[0] {
	case bigEndianMark:
		r.order = binary.BigEndian
	case littleEndianMark:
		r.order = binary.LittleEndian
	default:
		return fmt.Errorf("at offset 0: expected 0 or 1, found %d", mark[0])
	}
	return nil
}

func (r *cdrReader) uint32(v *uint32) error {
	b, err := r.take(4, 4)
	if err == nil {
		*v = r.order.Uint32(b)
	}
	return err
}

func (r *cdrReader) uint64(v *uint64) error {
	b, err := r.take(8, 8)
	if err == nil {
		*v = r.order.Uint64(b)
	}
	return err
}

// string reads a string of at most limit bytes. On the wire its length counts
// the NUL at the end.
func (r *cdrReader) string(v *string, limit uint32) error {
	var length uint32
	if err := r.uint32(&length); err != nil {
		return err
	}
	if length < 1 || length > limit+1 {
		return fmt.Errorf("at offset %d: expected a string length from 1 to %d, found %d", r.at-4, limit+1, length)
	}
	at := r.at
	b, err := r.take(int(length), 1)
	if err != nil {
		return err
	}
	text, end := string(b[:length-1]), b[length-1]
	if end != 0 {
		return fmt.Errorf("at offset %d: expected the NUL that ends the string, found %#02x", r.at-1, end)
	}
	if inner := strings.IndexByte(text, 0); inner >= 0 {
		return fmt.Errorf("at offset %d: expected no NUL before the end of the string at offset %d", at+inner, r.at-1)
	}
	*v = text
	return nil
}
