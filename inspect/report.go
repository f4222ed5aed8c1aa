package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Report is what an Analyzer found. Times are counted from where the capture
// begins, heights from the first frame id of the flow.
type Report struct {
	Capture  Capture   `json:"capture"`
	Findings []Finding `json:"findings"` // what others may follow from first, then what matters most
	Flows    []Flow    `json:"flows"`    // with most data first

	Sealed []Sealed `json:"sealed,omitempty"` // of endpoints with keys, in their order

	Connections []Connection `json:"connections,omitempty"` // of iWARP, in their order
}

// Capture describes the file.
type Capture struct {
	Records    int           `json:"records"`    // with those that are no frames
	Frames     int           `json:"frames"`     // of DG/RDMA
	Sealed     int           `json:"sealed"`     // frames, among these
	Handshakes int           `json:"handshakes"` // datagrams of handshakes for keys, likewise
	FPDUs      int           `json:"fpdus"`      // of iWARP, with those of set-up
	Malformed  int           `json:"malformed"`
	Changed    int           `json:"checksum_wrong,omitempty"` // frames that were changed on the way, says their checksum
	Cut        int           `json:"cut"`
	Hidden     int           `json:"behind_snap_length,omitempty"` // frames in records of several, of which nothing was captured
	Dropped    int           `json:"dropped_by_capture,omitempty"` // packets that the host that captured had no room for, as the file says
	Bytes      int64         `json:"bytes"`                        // of frames
	Begin      time.Time     `json:"begin"`                        // zero: the capture does not say, or nothing that a calendar has
	Duration   time.Duration `json:"duration_ns"`
	Backwards  int           `json:"backwards"`           // times that are before the one of the frame before
	Unfollow   int           `json:"frames_not_followed"` // of flows beyond the limit
	Damage     string        `json:"damage,omitempty"`    // why the file could not be read to its end
}

// Severity says how much a finding matters.
type Severity string

// The severities of findings.
const (
	Problem Severity = "problem" // something is broken, or lost for good
	Warning Severity = "warning" // it was repaired, the capture is incomplete, or it may be of something else
	Note    Severity = "note"    // good to know
)

// Finding says what somebody who debugs a link wants to know.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     string   `json:"kind"` // for programs
	Text     string   `json:"text"`
	Records  []int    `json:"records,omitempty"` // where to look
	Flow     int      `json:"flow,omitempty"`    // its number, from 1; 0: the capture
	More     int      `json:"more,omitempty"`    // findings like it that are left out

	Connection int `json:"connection,omitempty"` // its number, from 1, likewise
	weight     float64
	explains   bool // others may follow from it, more severe ones too
}

// End is one end of a flow.
type End struct {
	Address string           `json:"address"`
	ID      frame.EndpointID `json:"id"`
}

// Service is an owner of some of the sender's addresses, from Base on.
type Service struct {
	Name string `json:"name"`
	Base uint32 `json:"base"`
}

// Flow is one direction between two endpoints.
type Flow struct {
	Number  int `json:"number"`            // from 1
	Reverse int `json:"reverse,omitempty"` // number of the other direction, if that was captured
	From    End `json:"from"`
	To      End `json:"to"`

	Services []Service `json:"services,omitzero"` // that the sender told of last in a handshake; nil: it said nothing of them

	First       time.Duration `json:"first_ns"`
	Last        time.Duration `json:"last_ns"`
	FirstRecord int           `json:"first_record"`
	LastRecord  int           `json:"last_record"`

	Frames       int64 `json:"frames"` // of all kinds
	Bytes        int64 `json:"bytes"`
	WithMessages int   `json:"frames_with_messages"`
	AcksAlone    int   `json:"frames_with_acks_alone"`
	AcksCarried  int   `json:"frames_with_acks_carried"`
	Handshakes   int   `json:"handshakes"` // frames of them
	AcksGiven    int64 `json:"acks_given"` // ids that this flow acknowledged of the other one, repeats included
	Messages     int64 `json:"messages"`
	Data         int64 `json:"data_bytes"` // first copies

	Firsts       int `json:"first_copies"`                 // frames with messages, each once
	Resent       int `json:"resent"`                       // copies that the sender made
	ResentIDs    int `json:"resent_ids"`                   // frames of which it made some
	LiveHeaders  int `json:"live_headers"`                 // of the resent: under the transaction id of a later frame
	Duplicates   int `json:"duplicates"`                   // copies at once: the network's, or of a sender that repeats too early
	Late         int `json:"late"`                         // seen first after frames with later ids
	Strays       int `json:"strays"`                       // ids far from all others
	Conflicts    int `json:"conflicts"`                    // an id of another frame
	Missing      int `json:"missing"`                      // ids never seen
	Hidden       int `json:"behind_snap_length,omitempty"` // frames in records of several, of which nothing was captured
	MissingAcked int `json:"missing_acked"`
	Uncounted    int `json:"uncounted"` // messages with data under the count 0

	Acked      int `json:"acked"`
	Unacked    int `json:"unacked"`   // for good
	Pending    int `json:"pending"`   // when the capture ended
	Abandoned  int `json:"abandoned"` // when the sender began anew, or before it was known that it had
	EarlyAcked int `json:"resent_after_ack"`

	InFlightMost int       `json:"in_flight_most"`
	AckTime      Histogram `json:"ack_time"`        // of frames sent once
	AckTimeAgain Histogram `json:"ack_time_resent"` // of others, from the first copy on

	Transactions TransactionCounts `json:"transactions"`
	Restarts     []Restart         `json:"restarts,omitempty"`
	Sessions     []Session         `json:"sessions,omitempty"`           // the first of them
	RoundTrip    *Histogram        `json:"round_trip,omitempty"`         // in sessions, of transmissions that ACKs name, without how long the receiver waited
	LostSent     int               `json:"lost_transmissions,omitempty"` // in sessions: those that did not come before a later one of their frame, as ACKs say
	InVain       int               `json:"resent_in_vain,omitempty"`     // in sessions: retransmissions of frames that had come, as ACKs say
	Pauses       []Pause           `json:"pauses,omitempty"`

	BinWidth  time.Duration `json:"bin_ns"`
	Bins      []Bin         `json:"bins"`       // from First on
	Points    []Point       `json:"points"`     // frames, or an even choice of them
	AckPoints []Point       `json:"ack_points"` // the newest id acknowledged
	Every     int           `json:"every"`      // Points are one of so many
	Marks     []Mark        `json:"marks"`
	Waterfall []Transaction `json:"waterfall"` // all transactions if they are few, else those that took longest or never ended
}

// TransactionCounts counts the transactions of a flow.
type TransactionCounts struct {
	Begun     int       `json:"begun"`
	Completed int       `json:"completed"` // all their messages were seen
	Empty     int       `json:"empty"`     // a completion word without data
	UnderWay  int       `json:"under_way"` // when the capture ended
	CutOff    int       `json:"cut_off"`   // begun before the capture
	Never     int       `json:"never_completed"`
	Time      Histogram `json:"time"` // from the first message to the last
}

// Restart is the beginning of a new life of the sender.
type Restart struct {
	Record int           `json:"record"`
	At     time.Duration `json:"at_ns"`
	Silent time.Duration `json:"silent_ns"` // since it was heard before
	How    string        `json:"how"`       // it was told
}

// Point is a frame, or an acknowledgement, as pictures show it.
type Point struct {
	At     time.Duration `json:"at_ns"`
	Height int64         `json:"height"`
	Record int           `json:"record"`
}

// Mark is a point that deserves attention.
type Mark struct {
	Kind   string        `json:"kind"`
	At     time.Duration `json:"at_ns"`
	Height int64         `json:"height"`
	ID     uint32        `json:"id"`
	Record int           `json:"record"`
	Sent   int           `json:"sent,omitempty"` // how often, with this time
}

type markKind int

const (
	markResent markKind = iota
	markDuplicate
	markGap
	markLate
	markRestart
	markKinds
)

// The kinds of marks.
const (
	MarkResent    = "resent"
	MarkDuplicate = "duplicate"
	MarkGap       = "gap"
	MarkLate      = "late"
	MarkRestart   = "restart"
)

var markNames = [markKinds]string{MarkResent, MarkDuplicate, MarkGap, MarkLate, MarkRestart}

func (f *flow) report() Flow {
	r := Flow{
		Number: f.number + 1, From: End{f.key.src.String(), f.key.srcID}, To: End{f.key.dst.String(), f.key.dstID},
		First: f.first, Last: f.last, FirstRecord: f.firstRecord, LastRecord: f.lastRecord,
		Frames: f.frames, Bytes: f.wire, WithMessages: f.withMessages, AcksAlone: f.acksAlone, AcksCarried: f.acksCarried,
		Handshakes: f.shaken, AcksGiven: f.acksSent, Messages: f.messages, Data: f.dataFirst,
		Firsts: f.firsts, Resent: f.resent, ResentIDs: f.resentIDs, Duplicates: f.duplicates, Late: f.late, Strays: f.tooOld,
		LiveHeaders: f.live, Uncounted: f.uncounted,
		Conflicts: f.conflicts, Missing: f.missing, Hidden: f.hidden, MissingAcked: f.missingAcked,
		Acked: f.acked, Unacked: f.unacked, Pending: f.pending, Abandoned: f.abandoned, EarlyAcked: f.earlyAcks,
		InFlightMost: f.window.most, AckTime: f.once.report(), AckTimeAgain: f.repeated.report(),
		Transactions: TransactionCounts{
			Begun: f.tx.begun, Completed: f.tx.completed, Empty: f.tx.empty, UnderWay: f.tx.underWay, CutOff: f.tx.cutOff,
			Never: f.tx.never, Time: f.tx.times.report(),
		},
		Restarts: f.restarts, Pauses: f.pauses, BinWidth: f.series.width, Bins: f.series.all(),
		Points: f.points.all, AckPoints: f.ackPoints.all, Every: max(f.points.stride, 1), Waterfall: f.tx.waterfall(),
	}
	r.Sessions, r.LostSent, r.InVain = f.session.all, f.session.lost, f.session.vain
	if f.session.trips.n > 0 {
		h := f.session.trips.report()
		r.RoundTrip = &h
	}
	if f.told {
		r.Services = []Service{}
		for _, s := range f.services.All() {
			r.Services = append(r.Services, Service{s.Name.String(), s.Base})
		}
	}
	if f.reverse != nil {
		r.Reverse = f.reverse.number + 1
	}
	for i := range f.marks {
		r.Marks = append(r.Marks, f.marks[i].all...)
	}
	return r
}
