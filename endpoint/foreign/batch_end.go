package foreign

import "github.com/dgrdma/dgrdma/ack"

// Exchange tells s what r learnt in a batch, and the other way round. It returns how many frames of the peer are given up.
func Exchange(now ack.Instant, s *Sender, r *Receiver) (missed int) {
	if s.profile.Acks == AckIfResent && r.resent {
		s.acking = true
	}
	if s.acking {
		s.missing = deadline{} // the peer sends again, if only as it was told to
	} else {
		if s.missing.told {
			r.missing.forget()
		}
		missed = r.missing.roll(now)
		s.missing = deadline{frames: r.missing.older + r.missing.young, at: r.missing.since.Add(2 * missedAfter)}
	}
	if !s.proven {
		if s.proven = s.proof.look(now, r.acks, s.sender.InFlight() > 0); !s.proven {
			r.acks = r.acks[:0]
		}
	}
	return missed
}

// ScheduleAck has s acknowledge what r got in a batch: at once, if quick.
func ScheduleAck(now ack.Instant, s *Sender, r *Receiver, quick bool) {
	if s.acking {
		s.due.Take(now, &r.recv)
	} else {
		r.recv.DropPending()
	}
	if quick {
		s.due.Hold(now)
	}
}
