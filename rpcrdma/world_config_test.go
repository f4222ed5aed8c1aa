package rpcrdma

import "time"

// config draws how both ends are set up.
func (w *world) config() (client, server *Config) {
	rng := w.rng
	private := func(invalidate bool) Private {
		if rng.IntN(4) == 0 {
			return Private{}
		}
		return Private{1024 << rng.IntN(3), 1024 << rng.IntN(3), invalidate}
	}
	one := func(side Side) *Config {
		c := &Config{
			Side: side, Lowest: Version1, Highest: Version2, Window: MinWindow + rng.IntN(20)*(1+2*rng.IntN(2)), Reverse: rng.IntN(6), Sends: 8 << rng.IntN(4),
			SendSize: 1024 << rng.IntN(4), ReceiveSize: 4096, ORD: 1 + rng.IntN(4), MaxCall: 1 << 20, MaxReply: 1 << 20,
			First: 10 * time.Second, PartTime: 10 * time.Second, GiveUp: time.Hour,
		}
		switch rng.IntN(12) {
		case 0:
			c.MaxCall = 20000 + rng.IntN(20000)
		case 1:
			c.ORD = 0
		}
		return c
	}
	client, server = one(Client), one(Server)
	client.Local, server.Local = private(rng.IntN(2) == 0), private(false)
	client.Peer, server.Peer = server.Local, client.Local
	// The program's two sides agree on callbacks: version 1 has no word for it.
	server.Reverse = min(server.Reverse, client.Reverse)
	switch rng.IntN(5) {
	case 0, 1:
		client.Highest = Version1
	case 2:
		server.Highest = Version1 // the client falls back
	}
	return client, server
}
