package repair

// firstChange returns the sequence number of the first call that is dropped or whose outcome changes, or zero if there is none. Later
// calls may depend on it, so the code need not make them any more.
func (p *plan) firstChange() (first int32) {
	for i := range p.History {
		row := &p.History[i]
		_, isOpen := p.reopenedCalls[row.Name]
		_, hasValue := p.callsWithValue[row.Name]
		if (isOpen || hasValue || p.dropped[row.Name]) && !isInternalRecord(row) && (first == 0 || row.Seq < first) {
			first = row.Seq
		}
	}
	return first
}
