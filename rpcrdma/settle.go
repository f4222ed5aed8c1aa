package rpcrdma

import "time"

// settlement is how both sides agree on a version, and on the properties of version 2.
type settlement struct {
	local, peer Properties
	list        []Property // of local, as it is sent
	said        bool       // list was sent
	heard       bool       // all properties of the peer are there, or it has none
}

// settleXID is the XID of a CONNPROP, which no Call has. The number is arbitrary.
const settleXID = 0x64677270

// ownSegmentSize is the longest segment of this side of version 2, which has no bound of its own.
const ownSegmentSize = 1 << 30

// begin is the first thing that a client does.
func (m *Machine) begin() {
	if m.cfg.Side == Server {
		return
	}
	if m.cfg.Highest == Version1 {
		m.speak(Version1)
		return
	}
	m.speak(Version2)
	m.phase = Asked
	m.sendProperties()
}

// speak has the machine speak a version from now on.
func (m *Machine) speak(version uint32) {
	if version == Version1 {
		m.credits = newCredits1(&m.cfg)
		m.phase = Open
	} else {
		m.credits = newCredits2(&m.cfg)
		m.phase = Settling
		m.settle.local = DefaultProperties()
		p := &m.settle.local
		p.SendSize, p.ReceiveSize = uint32(m.cfg.SendSize), uint32(m.cfg.ReceiveSize)
		p.SegmentSize, p.SegmentCount = ownSegmentSize, MaxSegments
		if m.cfg.Reverse > 0 {
			p.Reverse = ReverseGeneral
		}
		m.settle.list = p.List()
		m.settle.peer = DefaultProperties()
	}
	m.version = version
	if m.cfg.Side == Server || version == Version1 {
		m.decoder.Lowest, m.decoder.Highest = version, version
	}
}

func (m *Machine) sendProperties() {
	m.send(outgoing{kind: kindProperties, xid: settleXID})
}

// hear takes the first message of the peer: a server speaks its version (RPCN-06), and a client knows that the server speaks version 2.
func (m *Machine) hear(p Prefix) {
	switch {
	case m.phase == Asked && p.Version == Version2:
		m.phase = Settling
		m.decoder.Lowest, m.decoder.Highest = Version2, Version2
	case m.phase == Asked:
		m.close(ErrFallBack) // neither an ERROR nor of a version that was asked for
	case m.phase == Opening && p.Version >= m.cfg.Lowest && p.Version <= m.cfg.Highest:
		m.speak(p.Version)
		if p.Version == Version2 {
			m.sendProperties()
		}
	}
}

// properties takes a CONNPROP of the peer.
func (m *Machine) properties(now time.Time, h *Header) {
	if m.settle.heard { // RPC2-060
		m.countMalformed(now)
		m.sendError(Version2, h.XID, Report{Code: CodeInvalHType})
		return
	}
	if !m.settle.peer.Apply(h.Properties) {
		m.badProperties(now, h.XID)
		return
	}
	if m.settle.peer.HostAuth != nil {
		m.settle.peer.HostAuth = append([]byte(nil), m.settle.peer.HostAuth...) // it is part of the message
	}
	if h.Flags&FlagTPMore == 0 {
		m.settled()
	}
}

// settled begins RPC: the properties of this side are sent before all else (RPC2-061).
func (m *Machine) settled() {
	m.settle.heard = true
	m.phase = Open
}

// badProperties refuses a CONNPROP. Without that of the server, a client cannot go on.
func (m *Machine) badProperties(now time.Time, xid uint32) {
	if m.cfg.Side == Client {
		m.close(ErrFallBack)
		return
	}
	m.countMalformed(now)
	m.sendError(Version2, xid, Report{Code: CodeBadPropVal})
}

// settleError takes an ERROR that concerns the first message of a client, or its CONNPROP. It reports whether it does.
func (m *Machine) settleError(h *Header) bool {
	if m.cfg.Side != Client || m.version != Version2 || h.XID != settleXID {
		return false
	}
	if h.Report.Code != CodeVers || m.phase != Asked {
		m.close(ErrFallBack)
		return true
	}
	low, high := max(h.Report.Low, m.cfg.Lowest), min(h.Report.High, m.cfg.Highest)
	switch {
	case low <= Version1 && high >= Version1:
		m.speak(Version1) // on the same connection; credits begin anew (RPCN-03)
	default:
		m.close(ErrVersion)
	}
	return true
}

// endOpening ends a connection whose peer has not said what it must in time.
func (m *Machine) endOpening() {
	if m.cfg.Side == Client && m.cfg.Lowest == Version1 {
		m.close(ErrFallBack) // RPCN-04
		return
	}
	m.close(ErrSilent)
}

// threshold returns the length of the longest Send to the peer.
func (m *Machine) threshold() int {
	if m.version == Version2 {
		return Threshold2(&m.settle.local, &m.settle.peer)
	}
	send, _ := Thresholds1(m.cfg.Local, m.cfg.Peer)
	return send
}

// replyThreshold returns the length of the longest Send from the peer.
func (m *Machine) replyThreshold() int {
	if m.version == Version2 {
		return Threshold2(&m.settle.peer, &m.settle.local)
	}
	_, receive := Thresholds1(m.cfg.Local, m.cfg.Peer)
	return receive
}

// segmentSize returns the length of the longest segment.
func (m *Machine) segmentSize() uint32 {
	if m.version == Version2 {
		return m.settle.peer.SegmentSize
	}
	return 1<<32 - 1
}
