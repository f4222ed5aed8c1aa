package link

// What a failed call left is nil, and what a program made itself, without Open, Listen or
// Dial, has no inside: neither can do anything.

func (h *Host) missing() bool { return h == nil || h.ep == nil }

func (n *Listener) missing() bool { return n == nil || n.host == nil }

func (l *Link) missing() bool { return l == nil || l.host == nil }

func (p *Producer) missing() bool { return p == nil || p.link == nil }

func (c *Consumer) missing() bool { return c == nil || c.link == nil }
