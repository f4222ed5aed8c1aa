package truth

import "github.com/dgrdma/dgrdma/inspect"

func (j *judgement) sealedFrames(f *inspect.Finding, _ *flow) string {
	return unless(j.plan.sealed, "nothing is sealed")
}

func (j *judgement) sealedPair(f *inspect.Finding) (*flow, int) {
	n, ok := match(`^([\d,]+) sealed frames? from endpoint (\d) to endpoint`, f.Text)
	if !ok {
		return nil, 0
	}
	return j.flows[[2]int{n[1] - 1, 2 - n[1]}], n[0]
}

func (j *judgement) sealedGap(f *inspect.Finding, _ *flow) string {
	about, n := j.sealedPair(f)
	if about == nil {
		return "it cannot be read"
	}
	there := map[*content]bool{}
	for _, s := range about.shots {
		there[s.content] = true
	}
	none := 0
	for _, c := range about.sent {
		none += boolean(!there[c])
	}
	return unless(n <= none, "there are at most "+itoa(none))
}

func (j *judgement) sealedCopies(f *inspect.Finding, _ *flow) string {
	about, n := j.sealedPair(f)
	if about == nil {
		return "it cannot be read"
	}
	there, doubled := map[*content]bool{}, 0
	for _, s := range about.shots {
		doubled += boolean(there[s.content])
		there[s.content] = true
	}
	return unless(n <= doubled, "there are at most "+itoa(doubled))
}

func (j *judgement) sealedLate(f *inspect.Finding, _ *flow) string {
	about, n := j.sealedPair(f)
	if about == nil {
		return "it cannot be read"
	}
	late, newest := 0, -1
	for _, s := range about.shots {
		late += boolean(s.number < newest)
		newest = max(newest, s.number)
	}
	return unless(n <= late || j.restarts(), "there are at most "+itoa(late))
}

func (j *judgement) handshake(f *inspect.Finding, _ *flow) string {
	return unless(j.plan.sealed, "nothing is sealed")
}
