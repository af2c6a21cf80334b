-- Open the file, wait for what is found, take one quick fix, and write what there is then as JSON.
-- For Neovim from 0.7 on; the environment says which server, which action and where to write.

local function report(values)
  local file = assert(io.open(vim.env.DEADLINT_OUT, "w"))
  file:write(vim.fn.json_encode(values))
  file:close()
  vim.cmd("qa!")
end

local buffer = vim.api.nvim_get_current_buf()
local client = vim.lsp.start_client({
  name = "deadlint",
  cmd = { vim.env.DEADLINT_PYTHON, "-m", "deadlint", "server", "--stdio" },
  root_dir = vim.fn.getcwd(),
})
vim.lsp.buf_attach_client(buffer, client)

local function codes()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(found, { code = one.code, line = one.lnum, source = one.source })
  end
  return found
end

if not vim.wait(30000, function() return #codes() > 0 end, 20) then
  report({ error = "no diagnostics" })
end
local before = codes()

vim.ui.select = function(items, options, choose)
  for _, item in ipairs(items) do
    if options.format_item(item):find(vim.env.DEADLINT_ACTION, 1, true) then
      return choose(item)
    end
  end
  report({ error = "no such action" })
end
vim.api.nvim_win_set_cursor(0, { before[1].line + 1, 12 })
local tick = vim.api.nvim_buf_get_changedtick(buffer)
vim.lsp.buf.code_action()
if not vim.wait(30000, function() return vim.api.nvim_buf_get_changedtick(buffer) > tick end, 20) then
  report({ error = "the action changed nothing" })
end
vim.wait(30000, function() return #codes() == 0 end, 20)
report({
  before = before,
  after = codes(),
  text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") .. "\n",
})
