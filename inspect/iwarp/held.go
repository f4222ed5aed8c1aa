package iwarp

import "github.com/dgrdma/dgrdma/capture/tcp"

// What is kept in addition to bytes counts for that much.
const (
	markSize    = 48
	requestSize = 256
)

// grown is the direction of which something was kept last.
type grown struct {
	c *Connection
	w tcp.Way
}

// account counts what waits of a direction that was read.
func (d *Decoder) account(c *Connection, w tcp.Way) {
	if d.count(c, w) > 0 {
		d.grown = grown{c, w}
	}
}

// count returns how much waits.
func (d *Decoder) count(c *Connection, w tcp.Way) int {
	v := &c.ways[w]
	now := len(v.buf) + markSize*(len(v.marks)+len(v.search.candidates)) + requestSize*v.requests.waiting
	d.hold(c, now-v.held)
	v.held = now
	return now
}

// hold notes that so many bytes more are kept of a connection.
func (d *Decoder) hold(c *Connection, n int) {
	d.held += n
	c.TCP.Held += n
}

// drop lets go of what waits.
func (d *Decoder) drop(c *Connection) {
	d.forgetEarly(c)
	d.dropWay(c, 0)
	d.dropWay(c, 1)
}

func (d *Decoder) dropWay(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	v.buf, v.marks, v.search, v.absent = nil, nil, search{}, 0
	v.requests.clear()
	d.count(c, w)
}
