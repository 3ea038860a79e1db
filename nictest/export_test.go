package nictest

// Trials measures a simulated sender without a fit.
func Trials(c Config, sim Simulation) ([]TrialResult, error) {
	s, err := simulate(c, sim)
	if err != nil {
		return nil, err
	}
	return s.results, nil
}
