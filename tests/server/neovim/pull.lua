-- Open the file, wait for pulled diagnostics and inlay hints, change a line, and write both as JSON.
-- For Neovim from 0.11 on.

local function report(values)
  local file = assert(io.open(vim.env.DEADLINT_OUT, "w"))
  file:write(vim.json.encode(values))
  file:close()
  vim.cmd("qa!")
end

local pushed = 0
local publish = vim.lsp.handlers["textDocument/publishDiagnostics"]
vim.lsp.handlers["textDocument/publishDiagnostics"] = function(...)
  pushed = pushed + 1
  return publish(...)
end

local buffer = vim.api.nvim_get_current_buf()
local id = assert(vim.lsp.start({
  name = "deadlint",
  cmd = { vim.env.DEADLINT_PYTHON, "-m", "deadlint", "server", "--stdio" },
  root_dir = vim.fn.getcwd(),
}))
local client = assert(vim.lsp.get_client_by_id(id))

local function codes()
  return vim.tbl_map(function(one) return one.code end, vim.diagnostic.get(buffer))
end

local function hints()
  return vim.tbl_map(function(one)
    local label = one.inlay_hint.label
    return type(label) == "string" and label or label[1].value
  end, vim.lsp.inlay_hint.get({ bufnr = buffer }))
end

vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
if not vim.wait(30000, function() return #codes() > 0 and #hints() > 0 end, 20) then
  report({ error = "no diagnostics or no hints", codes = codes(), hints = hints() })
end
local before = { codes = codes(), hints = hints() }

local line = vim.fn.search("timeout=900") - 1
local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
vim.api.nvim_buf_set_lines(buffer, line, line + 1, false, { (text:gsub("timeout=900", "timeout=60")) })
vim.wait(30000, function() return not vim.tbl_contains(codes(), "DL401") and #hints() == 0 end, 20)
report({
  pulls = client:supports_method("textDocument/diagnostic", buffer),
  pushed = pushed,
  before = before,
  after = { codes = codes(), hints = hints() },
})
